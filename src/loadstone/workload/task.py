"""The workloads of a task file as measurements."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from loadstone.engine.callables.model import MOST_WORKERS, require_room
from loadstone.engine.limits import MOST_CONNECTIONS, most_connections
from loadstone.errors import InvalidInput
from loadstone.oidc import scenarios as oidc
from loadstone.oidc.prepare import require_given
from loadstone.oidc.target import OidcIssuer
from loadstone.plan.hooks import has_faults
from loadstone.plan.load import ClosedLoad, OpenLoop, peak_rps
from loadstone.plan.model import Limits, Placement, Retries
from loadstone.rally.functions.catalogue import FUNCTIONS, SERVICES
from loadstone.rally.runner import Pacing, pacing
from loadstone.rally.scenarios import has_requests_of_rally, is_data, scenario
from loadstone.rally.steps import MOST_STEPS, RisingLoad
from loadstone.rally.task.catalogue.own import OIDC_PLATFORM, entry_of
from loadstone.rally.task.model import Rps, Runner, Subtask, Task, Workload
from loadstone.rally.task.spec import runner_text
from loadstone.result.model import Measurement
from loadstone.search.model import TrialRequest
from loadstone.workload.generator import LoadGenerator
from loadstone.workload.model import MAX_RATE_RPS, MeasurementConfig, MeasurementGroup
from loadstone.workload.oidc import OidcRequests
from loadstone.workload.policy import Fixed, LoadPolicy, Steps
from loadstone.workload.requests import Requests
from loadstone.workload.searchable import RequestOptions

# Rally's openstack_client_http_timeout, which task files assume.
REQUEST_TIMEOUT_S = 180.0
MOST_PACED = 10_000_000  # starts that are computed in advance, in some hundred MB
# As in Rally, all iterations that are due run, also those that wait for others at the end: each
# ends by its own time-outs. A week is the longest load that can be imported, too.
DRAIN_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """Terms of a task."""

    max_rate_rps: float = MAX_RATE_RPS  # of open loops; a closed loop is as fast as the service
    paces_as_rally: bool = False  # keep a rate as Rally does, bursts included
    requests_as_rally: bool = False  # send all that Rally sends for an iteration
    placement: Placement = field(default_factory=Placement)
    rising_load: RisingLoad | None = None  # each workload again and again
    parameters: tuple[tuple[str, str], ...] = ()  # of the study that it is a part of: for reports


def task_groups(
    task: Task, terms: TaskTerms, provider: OidcIssuer | None = None
) -> tuple[MeasurementGroup, ...]:
    """Return a group for each workload; raise InvalidInput for an unsupported one.

    `provider` is the target, if it is an OpenID provider and not a cloud.
    """
    workloads = [(subtask, workload) for subtask in task.subtasks for workload in subtask.workloads]
    return tuple(
        MeasurementGroup(
            (_measurement(terms, subtask, workload, f"{number} of {len(workloads)}", provider),),
            contexts=workload.contexts,
        )
        for number, (subtask, workload) in enumerate(workloads, 1)
    )


def _measurement(
    terms: TaskTerms, subtask: Subtask, workload: Workload, number: str, provider: OidcIssuer | None
) -> MeasurementConfig:
    place = f"{workload.file}:{workload.line}: "
    _require_service(workload.scenario.name, provider, place)
    found = _pacing(terms, workload.runner)
    if rate := _excess_rps(terms, workload.runner, found):
        raise InvalidInput(
            f"{place}{rate:g} iterations a second are more than the {terms.max_rate_rps:g} that "
            "are allowed; raise --max-rate"
        )
    rising = terms.rising_load
    request = _request(workload, found)
    policy: LoadPolicy = Fixed(request)
    if rising is not None:
        rising.at(workload, 0)  # refuses a runner that has nothing to raise
        policy = Steps(partial(_requests, terms, rising, workload), rising.until.is_reached)
    return MeasurementConfig(
        record=Measurement(
            scenario=workload.scenario.name,
            title=subtask.title,
            policy="fixed" if rising is None else "steps",
            parameters=terms.parameters,
            subtask=subtask.title,
            begins_subtask=workload is subtask.workloads[0],
            subtask_description=subtask.description,
            description=workload.description,
            workload=workload.spec,
            reduced=workload.reduced,
            paced_as_rally=terms.paces_as_rally and isinstance(workload.runner, Rps),
        ),
        generator=_generator(terms, workload, found, place),
        policy=policy,
        heading=f"{number}: {workload.scenario.name}, {runner_text(workload.spec)}",
        criteria=workload.sla,
        hooks=workload.hooks,
    )


def _generator(terms: TaskTerms, workload: Workload, pace: Pacing, place: str) -> LoadGenerator:
    name, arguments = workload.scenario.name, workload.scenario.arguments
    limits = _limits(pace)
    # A retried request hides a failure.
    retries: Retries = "never" if has_faults(workload.hooks) else "unread"
    if _platform(name) == OIDC_PLATFORM:
        options = RequestOptions(retries=retries)
        return OidcRequests(oidc.named(name), limits, terms.placement, options, place)
    if is_data(name):
        as_rally = terms.requests_as_rally and has_requests_of_rally(name)
        try:
            built = scenario(name, arguments, rally_requests=as_rally)
        except InvalidInput as refused:
            raise InvalidInput(f"{place}{name}: {refused}") from None
        return Requests(built, arguments, limits, terms.placement, as_rally, place, retries)
    if terms.placement.http != "1.1":
        raise InvalidInput(
            f"{place}{name} is a Python function, which sends as its library does; leave out "
            "--http2"
        )
    # Only worker processes need this.
    from loadstone.workload.functions import Calls

    require_room(f"{place}{name}", pace.load, pace.max_in_flight)
    # Without a cloud there is nothing to log in to.
    logs_in_anew = terms.requests_as_rally and name in SERVICES
    how = (pace.timeout_s, pace.max_in_flight, logs_in_anew)
    return Calls(name, place, FUNCTIONS[name], arguments, *how)


def _require_service(name: str, provider: OidcIssuer | None, place: str) -> None:
    """Refuse a scenario of a service that the target is not, or for which it lacks something."""
    platform = _platform(name)
    if platform == OIDC_PLATFORM:
        if provider is None:
            raise InvalidInput(f"{place}{name}: needs an OpenID provider: --oidc ISSUER")
        require_given(oidc.named(name), provider, f"{place}{name}")
    elif platform == "openstack" and provider is not None:
        raise InvalidInput(f"{place}{name}: needs an OpenStack cloud, not an OpenID provider")


def _platform(name: str) -> str:
    entry = entry_of(name)
    return "default" if entry is None else entry.platform


def _limits(pace: Pacing) -> Limits:
    """Return the engine's limits for a runner."""
    patience_s = pace.timeout_s or REQUEST_TIMEOUT_S
    return Limits(
        connect_timeout_s=patience_s,
        request_timeout_s=patience_s,
        iteration_timeout_s=pace.timeout_s,
        drain_s=DRAIN_S,
        stopped_drain_s=patience_s,
    )


def _requests(terms: TaskTerms, rising: RisingLoad, workload: Workload) -> Iterator[TrialRequest]:
    """Yield the load of each step, until the runner or the maximum rate ends the steps."""
    for number in range(MOST_STEPS):
        step = rising.at(workload, number)
        if step is None:
            return
        found = _pacing(terms, step.runner)
        if _excess_rps(terms, step.runner, found) or not _has_room(workload, found):
            return
        yield _request(step, found, runner=step.spec.runner)


def _has_room(workload: Workload, pace: Pacing) -> bool:
    """Whether there may be as many workers; only those of Python functions are limited."""
    if workload.scenario.name not in FUNCTIONS or not isinstance(pace.load, ClosedLoad):
        return True
    return pace.load.workers <= MOST_WORKERS


def _request(
    workload: Workload, pace: Pacing, runner: Mapping[str, Any] | None = None
) -> TrialRequest:
    name = workload.scenario.name
    connections = Limits().max_connections
    if isinstance(pace.load, ClosedLoad):
        connections = pace.load.workers
    elif isinstance(workload.runner, Rps):  # Rally's default is as many as there are iterations
        wanted = pace.max_in_flight or workload.runner.times
        most = MOST_WORKERS if name in FUNCTIONS else MOST_CONNECTIONS
        connections = most_connections(min(wanted, most))
    return TrialRequest(pace.load, name, max_connections=connections, runner=runner)


def _pacing(terms: TaskTerms, runner: Runner) -> Pacing:
    processes = None
    if terms.paces_as_rally and isinstance(runner, Rps):  # as many as Rally would take here
        if runner.times > MOST_PACED:
            raise InvalidInput(
                f"--rally-pacing: computes the start of each iteration, of {MOST_PACED:,} at most; "
                f"times is {runner.times:,}"
            )
        cpus = min(os.cpu_count() or 1, runner.max_cpu_count or runner.times)
        processes = min(cpus, runner.times, runner.max_concurrency or runner.times)
    return pacing(runner, processes)


def _excess_rps(terms: TaskTerms, runner: Runner, pace: Pacing) -> float | None:
    """Return a workload's rate if it exceeds the maximum rate."""
    # The rate in the file, too: of Rally's pacing, the peak is a count within one second, which a
    # short load does not fill.
    loads = (pace.load, pacing(runner).load)
    rate = max((peak_rps(one) for one in loads if isinstance(one, OpenLoop)), default=0.0)
    return rate if rate > terms.max_rate_rps else None
