"""What a run would send and create, known from its configuration, without any connection."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from loadstone.cloud.permission import is_loopback
from loadstone.engine.limits import most_connections
from loadstone.faults.carried import FaultRunner
from loadstone.faults.journal import FaultTarget
from loadstone.faults.pending import chosen_target
from loadstone.keystone.contexts.model import (
    Context,
    ExistingServers,
    Network,
    Quotas,
    Roles,
    Users,
)
from loadstone.monitor.sources.open import open_source
from loadstone.oidc.target import OidcIssuer
from loadstone.plan.hooks import FaultInjection
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoop, peak_rps
from loadstone.report.figures import counted
from loadstone.search.low_load import LOAD_S
from loadstone.search.model import TrialRequest
from loadstone.target.choice import (
    LabOnHost,
    NamedTarget,
    OwnLab,
    ReferenceService,
    TargetChoice,
    WebService,
    cloud_of,
    place_of,
)
from loadstone.workload.fault import LEAST_N_RPS
from loadstone.workload.model import (
    MAX_RATE_RPS,
    MeasurementConfig,
    MeasurementGroup,
    RunConfig,
)
from loadstone.workload.policy import Fixed, Interleaved, LowLoad, Repeats, Search, Steps


@dataclass(frozen=True, slots=True)
class TargetPreview:
    """A target as it was chosen."""

    chosen: str  # "--cloud prod", "a new lab"
    url: str | None  # None: it is not known before the lab is started
    lacks_permission: bool = False  # the run would be refused without --yes-load-this-target


@dataclass(frozen=True, slots=True)
class LoadPreview:
    """The load of one measurement."""

    title: str
    request: str  # what an iteration sends
    load: str
    # Limits, which the engine keeps; None: only the time limit of the run ends it.
    seconds_at_most: float | None
    rate_per_s_at_most: float
    in_flight_at_most: int
    creates_in_load: tuple[str, ...] = ()  # kinds of resources that iterations create
    faults: tuple[str, ...] = ()
    hooks: int = 0


@dataclass(frozen=True, slots=True)
class RunPreview:
    """What a run would send, where, for how long, and what it would create."""

    targets: tuple[TargetPreview, ...]
    loads: tuple[LoadPreview, ...]
    creates: tuple[str, ...]  # before the load; removed at the end
    seconds_at_most: float | None  # of load, over all measurements
    rate_per_s_at_most: float
    in_flight_at_most: int
    fleet: str | None = None
    times: int = 1  # how often all of this is done: repeats of a study


def preview(config: RunConfig, others: Sequence[TargetChoice] = ()) -> RunPreview:
    """Return the preview of a run; `others` are further targets that get the same load.

    Raises InvalidInput for a fault that the target cannot have.
    """
    targets = tuple(target_preview(choice) for choice in (config.target, *others))
    _require_faults_possible(config)
    loads = tuple(_load(one, config.max_rate_rps) for one in config.measurements)
    seconds = [one.seconds_at_most for one in loads]
    total = sum(one for one in seconds if one is not None)
    most_s = min(math.inf if None in seconds else total, config.budget_s)
    return RunPreview(
        targets=targets,
        loads=loads,
        creates=tuple(
            dict.fromkeys(one for group in config.groups for one in _creates(group, config.target))
        ),
        seconds_at_most=most_s if math.isfinite(most_s) else None,
        rate_per_s_at_most=max((one.rate_per_s_at_most for one in loads), default=0.0),
        in_flight_at_most=max((one.in_flight_at_most for one in loads), default=0),
        fleet=None if config.fleet is None else str(config.fleet),
    )


def _require_faults_possible(config: RunConfig) -> None:
    if not config.has_faults or isinstance(config.target, OwnLab):  # whose parts are not known yet
        return
    place = place_of(config.target)
    target = chosen_target(config.target) or FaultTarget()
    runner = FaultRunner(target, config.fault_commands, "", None if place is None else place.host)
    for one in config.measurements:
        runner.require_possible(one.faults, one.hooks, one.held)


def target_preview(choice: TargetChoice) -> TargetPreview:
    """Return what is known of a target; InvalidInput if there is none, or a --monitor is wrong."""
    if isinstance(choice, NamedTarget | WebService | OidcIssuer):
        for text in choice.watched:
            open_source(text)  # which connects to nothing
    match choice:
        case NamedTarget(lab=str(name)) if (place := place_of(choice)) is not None:
            return TargetPreview(f"--lab {name} on {place.host}", None, not choice.beyond_loopback)
        case NamedTarget(lab=str(name)):
            from loadstone.lab.deployment import find

            return TargetPreview(f"--lab {name}", find(name).url)
        case NamedTarget():
            cloud = cloud_of(choice)
            is_here = is_loopback(cloud.endpoint.host, cloud.endpoint.port)
            is_refused = not is_here and not choice.beyond_loopback
            return TargetPreview(cloud.chosen, cloud.endpoint.url, is_refused)
        case WebService() | OidcIssuer():
            endpoint = choice.cloud.endpoint
            is_here = is_loopback(endpoint.host, endpoint.port)
            chosen = "URL" if isinstance(choice, WebService) else choice.cloud.chosen
            return TargetPreview(chosen, choice.url, not is_here and not choice.beyond_loopback)
        case OwnLab() | ReferenceService():
            what = "a lab that is" if isinstance(choice, OwnLab) else "loadstone serve,"
            return TargetPreview(f"{what} started on this machine", None)
        case LabOnHost():
            return TargetPreview(
                f"a lab that is started on {choice.place.host}", None, not choice.beyond_loopback
            )
        case _:
            assert_never(choice)


def _load(one: MeasurementConfig, max_rate_rps: float) -> LoadPreview:
    sent = one.generator.preview
    text, seconds, rate_rps = _policy(one, max_rate_rps)
    if one.at_capacity is not None:
        # The lowest N needs the longest load, the highest the most in flight.
        _, seconds, _ = _policy(one.at_capacity(LEAST_N_RPS), max_rate_rps)
        text, rate_rps = "a share of the N that is measured before", max_rate_rps
        one = one.at_capacity(MAX_RATE_RPS)
    requests = _requests(one)
    return LoadPreview(
        title=one.record.title or one.heading,
        request=one.record.scenario if sent.request is None else sent.request,
        load=text,
        seconds_at_most=None if math.isinf(seconds) else seconds,
        rate_per_s_at_most=min(rate_rps, max_rate_rps),
        in_flight_at_most=max(_in_flight(one, request) for request in requests or (None,)),
        creates_in_load=sent.creates,
        faults=tuple(_sentences(one)),
        hooks=len(one.hooks),
    )


def _requests(one: MeasurementConfig) -> tuple[TrialRequest, ...]:
    """Return the loads that are known before the run."""
    match one.policy:
        case Fixed() | Repeats() | Interleaved():
            return (one.policy.request,)
        case Steps(requests=requests):
            return tuple(requests())
        case _:
            return ()


def _policy(one: MeasurementConfig, max_rate_rps: float) -> tuple[str, float, float]:
    """Return the load in words, its seconds at most, and its highest rate."""
    match one.policy:
        case Search():
            method = dict(one.record.parameters).get("method", "meter")
            return f"a search for N ({method})", one.budget_s, max_rate_rps
        case LowLoad():
            return "a low load, from which N is predicted", LOAD_S, max_rate_rps
        case Steps(requests=requests):
            rates = [_rate(request.load, max_rate_rps) for request in requests()]
            words = f"a load that rises in {counted(len(rates), 'step')} at most"
            return words, one.budget_s, max(rates, default=max_rate_rps)
        case Fixed(request=request):
            # Iterations of a task that are due late all run, until the budget ends the load.
            is_queued = one.record.workload is not None and isinstance(request.load, OpenLoop)
            seconds = math.inf if is_queued else _seconds(request.load)
            return _words(request.load), seconds, _rate(request.load, max_rate_rps)
        case Interleaved(request=request, most=count):
            # Warm-ups and a profile are longer than a trial, and so are turns of a slow service.
            words = f"{_words(request.load)}, {count} times at most"
            return words, one.budget_s, _rate(request.load, max_rate_rps)
        case Repeats(request=request, count=count):
            times = "once" if count == 1 else f"{count} times at most"
            words = f"{_words(request.load)}, {times}"
            seconds = min(count * _seconds(request.load), one.budget_s)
            return words, seconds, _rate(request.load, max_rate_rps)
        case _:
            assert_never(one.policy)


def _words(load: Load) -> str:
    match load:
        case ClosedLoad():
            ends = [counted(load.iterations, "iteration")] if load.iterations else []
            ends += [f"{load.duration_s:g} s"] if load.duration_s is not None else []
            return f"{load.workers} at once, for {' or '.join(ends)}"
        case BandLoad():
            return f"{load.low} to {load.high} in flight for {load.duration_s:g} s"
        case _:
            return f"{peak_rps(load):g}/s at most for {load.duration_s:g} s"


def _seconds(load: Load) -> float:
    return math.inf if load.duration_s is None else load.duration_s


def _rate(load: Load, max_rate_rps: float) -> float:
    match load:
        case ClosedLoad():
            return max_rate_rps  # as fast as answers come
        case BandLoad():
            return load.fill_rps
        case _:
            return peak_rps(load)


def _in_flight(one: MeasurementConfig, request: TrialRequest | None) -> int:
    if request is not None and isinstance(request.load, ClosedLoad):
        return request.load.workers
    limits = one.generator.preview.limits
    most = None if limits is None else limits.max_connections
    if request is not None and request.max_connections is not None:
        most = request.max_connections
    # More connections than this machine can open are never open.
    return most_connections(most if most is not None else 256)


def _sentences(one: MeasurementConfig) -> Iterator[str]:
    yield from (planned.fault.sentence for planned in one.faults)
    if one.held is not None:
        yield one.held.sentence
    for hook in one.hooks:
        if isinstance(hook.action, FaultInjection):
            yield hook.action.sentence


def _creates(group: MeasurementGroup, target: TargetChoice) -> Iterator[str]:
    """Yield what the contexts of a group create in a target."""
    if group.most_existing == 0:
        return
    users = [context for context in group.contexts if isinstance(context, Users)]
    tenants = sum(context.tenants for context in users)
    for context in group.contexts:
        if isinstance(context, Users):
            yield from _of_users(context, target)
        else:
            yield from _of_context(context, tenants)
    for one in group.measurements:
        yield from (f"{need} of each user" for need in one.generator.preview.needs)


def _of_users(context: Users, target: TargetChoice) -> Iterator[str]:
    unless = ""
    if context.may_be_existing:
        match target:
            case NamedTarget(users_file=Path()):
                return
            case NamedTarget(lab=str()) | OwnLab() | LabOnHost():
                unless = ", unless the lab has users of its own (LDAP)"
    needs_domain = context.project_domain is None or context.user_domain is None
    domain = f"{counted(1, 'domain')}, " if needs_domain else ""
    projects = counted(context.tenants, "project")
    users = counted(context.tenants * context.users_per_tenant, "user")
    yield f"{domain}{projects}, {users}{unless}"


def _of_context(context: Context, tenants: int) -> Iterator[str]:
    match context:
        case Roles():
            yield f"the roles {', '.join(context.names)} of each user"
        case Quotas():
            yield f"quotas of {', '.join(context.limits)} in each project"
        case Network():
            networks = tenants * context.networks_per_tenant
            subnets = networks * context.subnets_per_network
            yield f"{counted(networks, 'network')}, {counted(subnets, 'subnet')}"
        case ExistingServers():
            yield counted(tenants * context.per_tenant, "server")
        case _:
            return
