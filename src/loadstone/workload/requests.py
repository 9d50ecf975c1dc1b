"""Requests that the engine sends by itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from loadstone.cloud.permission import require_permission
from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.workload import Actors
from loadstone.keystone.identity import Identity
from loadstone.keystone.prepared import prepare, require_credentials, require_permitted
from loadstone.keystone.rust import require_served
from loadstone.keystone.scenarios.build_context import BuildContext
from loadstone.keystone.scenarios.model import Need, Scenario
from loadstone.plan.json_value import Json
from loadstone.plan.load import ClosedLoad, OpenLoad, StagedLoad
from loadstone.plan.model import Limits, Placement, Plan, Retries
from loadstone.plan.script import Step, Text
from loadstone.plan.trace import HEADER
from loadstone.rally.scenarios import with_look_ups
from loadstone.search.model import TrialRequest
from loadstone.system.say import Say
from loadstone.target.target import Target
from loadstone.workload.generator import GeneratorPreview, Load, Loaded, LoadTerms


@dataclass(frozen=True, slots=True)
class Requests:
    """A scenario whose requests the engine sends."""

    scenario: Scenario  # not built for a cloud yet
    arguments: Mapping[str, Json] = field(default_factory=dict, repr=False)
    limits: Limits = field(default_factory=Limits)
    placement: Placement = field(default_factory=Placement)
    requests_as_rally: bool = False
    place: str = ""  # in a task file: "task.yaml:3: "
    retries: Retries = "unread"

    needs_actors = True
    is_sent_by_engine = True

    @property
    def preview(self) -> GeneratorPreview:
        """What an iteration sends and creates."""
        made = tuple(f"{created.kind}" for created in self.scenario.makes)
        return GeneratorPreview(self.scenario.request, made, self.scenario.needs, self.limits)

    def require_permitted(self, target: Target) -> None:
        """Refuse another machine that the scenario sends to; the target is permitted already."""
        require_permitted(self.scenario, target.access, f"{self.place}{self.scenario.name}: ")
        if target.federation is not None and Need.FEDERATION in self.scenario.needs:
            issuer = target.federation.issuer
            require_permission(issuer.cloud, issuer.beyond_loopback)

    def require_usable(self, target: Target) -> None:
        """Refuse a target that lacks the scenario, or what the scenario needs."""
        require_served(self.scenario, target.unserved, self.place)
        require_credentials(self.scenario, target.access, target.federation, self.place)
        if self.placement.http != "2":
            return
        access = target.access
        where = self.scenario.origin or access.endpoint.origin(access.cloud.tls)
        # The engine connects and looks when it prepares a load; this one is not started.
        plan = Plan(
            where,
            (Step("look", "GET", (Text("/"),)),),
            ClosedLoad(1, iterations=1),
            limits=Limits(max_connections=1),
            placement=Placement(http="2"),
        )
        with gate.prepare(plan, Allowance(1.0, 1.0, access.beyond_loopback)):
            pass

    @contextmanager
    def prepared(
        self, target: Target, run_id: str, actors: Actors | None, say: Say
    ) -> Iterator[Load]:
        """Look up ids in the cloud, and issue the tokens that iterations need."""
        if actors is None:
            raise AssertionError("requests are made as somebody")
        access = target.access
        cloud = BuildContext(run_id, Identity(access))
        located = with_look_ups(
            self.scenario, self.arguments, cloud, rally_requests=self.requests_as_rally
        )
        # What is sent is the same; the measurement says how often connections are opened.
        located = replace(located, connection=self.scenario.connection)
        prepared = prepare(located, actors, access, say, target.federation)

        def load(request: TrialRequest, terms: LoadTerms) -> Loaded:
            nonlocal prepared
            limits = limits_of_trial(self.limits, request)
            prepared = prepared.lasting(access, target.federation, request.load, limits, say)
            fresh = prepared.of_run(run_id)  # with unique names for what iterations create
            if request.users_share < 1:
                fresh = fresh.of_fewer_users(request.users_share)
            plan = fresh.plan(access, request.load, limits, self.placement)
            return send(replace(plan, retries=self.retries), fresh.actions, terms)

        yield load


def send(plan: Plan, actions: tuple[str, ...], terms: LoadTerms) -> Loaded:
    """Send a plan, to the file of the terms if they have one."""
    trace = terms.trace
    if trace is not None and _has_own_traces(plan):
        raise InvalidInput(f"requests have a header {HEADER} of their own; leave out --trace-share")
    threads = min(plan.placement.threads, plan.limits.max_connections)
    plan = replace(plan, trace=trace, placement=replace(plan.placement, threads=threads))
    plan = _with_seed(plan, terms.seed)
    terms.on_begin()
    if terms.file is None:
        done = gate.run(plan, terms.allowance, terms.on_progress, terms.engine)
        return Loaded(done.samples, done.health, done.interrupted, actions, trace=trace)
    on_samples = terms.on_samples
    rows_callback = None if on_samples is None else (lambda rows: on_samples(rows, actions))
    spilled = gate.run_to_file(
        plan, terms.file, terms.allowance, terms.on_progress, rows_callback, terms.engine
    )
    return Loaded(spilled.file, spilled.health, spilled.interrupted, actions, trace=trace)


def _with_seed(plan: Plan, seed: int) -> Plan:
    """Return a plan whose random choices and arrivals are those of a seed."""
    load = plan.load
    if isinstance(load, OpenLoad | StagedLoad):
        load = replace(load, seed=seed)
    return replace(plan, load=load, seed=seed)


def _has_own_traces(plan: Plan) -> bool:
    steps = (step for step in plan.steps if isinstance(step, Step))
    return any(name.lower() == HEADER for step in steps for name, _ in step.headers)


def limits_of_trial(limits: Limits, request: TrialRequest) -> Limits:
    """Return the limits with those of a trial."""
    if request.max_connections is not None:
        limits = replace(limits, max_connections=request.max_connections)
    if request.time_left is not None and request.load.duration_s is not None:
        rest_s = max(0.0, request.time_left.most_s - request.load.duration_s)
        limits = replace(limits, drain_s=min(limits.drain_s, rest_s))
    return limits
