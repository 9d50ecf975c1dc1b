"""Python functions that worker processes call."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from loadstone.analysis.model import Failure
from loadstone.engine import gate
from loadstone.engine.callables.model import DRAIN_S, CallPlan, Function
from loadstone.engine.callables.model import FailureGroup as CallFailure
from loadstone.engine.gate import Allowance
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.contexts.workload import Actors
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import iteration_prefix, with_prefix
from loadstone.plan.json_value import Json
from loadstone.plan.load import BandLoad, ClosedLoad
from loadstone.rally.functions.actor import rows, settings
from loadstone.rally.functions.catalogue import SERVICES, SWEEPS, Sweep
from loadstone.search.model import TrialRequest
from loadstone.system.say import Say
from loadstone.target.target import Target
from loadstone.workload.generator import GeneratorPreview, Load, Loaded, LoadTerms

SWEEPERS = 8  # users whose leftovers are removed in parallel
SWEEP_RPS, SWEEP_S = 100.0, 3600.0  # limits: users started per second, and seconds


@dataclass(frozen=True, slots=True)
class Calls:
    """A scenario that is a Python function."""

    name: str
    place: str  # in its file: "task.yaml:3: "
    function: Function
    arguments: Mapping[str, Json] = field(default_factory=dict, repr=False)
    timeout_s: float | None = None
    max_in_flight: int | None = None
    logs_in_anew: bool = False  # in every iteration, as Rally

    needs_actors = False
    is_sent_by_engine = False
    requests_as_rally = False  # a function sends the requests of its library

    @property
    def preview(self) -> GeneratorPreview:
        """The resources that an iteration creates. Its requests are not known before it runs."""
        sweep = SWEEPS.get(self.name)
        return GeneratorPreview(creates=() if sweep is None else (f"{sweep.made.kind}",))

    @property
    def drain_s(self) -> float:
        """How long running iterations may take after the load: the last one its whole time-out."""
        return max(DRAIN_S, self.timeout_s or 0.0)

    def require_permitted(self, target: Target) -> None:
        """Refuse a service that is on another machine according to the catalog."""
        needed = SERVICES.get(self.name)
        if needed is not None:
            try:
                target.access.service_url(needed)
            except InvalidInput as refused:
                raise InvalidInput(f"{self.place}{self.name}: {refused}") from None

    def require_usable(self, target: Target) -> None:
        """Refuse a scenario whose service the cloud does not have."""
        needed = SERVICES.get(self.name)
        if needed is not None and target.access.service_url(needed) is None:
            raise EnvironmentUnusable(
                f"{self.place}{self.name} needs a service of type {needed}, and "
                f"{target.access.lacks(needed)}"
            )

    @contextmanager
    def prepared(
        self, target: Target, run_id: str, actors: Actors | None, say: Say
    ) -> Iterator[Load]:
        """Journal what iterations create; remove leftovers in other services at the end."""
        own_settings = settings(
            target.access,
            iteration_prefix(run_id),
            logs_in_anew=self.logs_in_anew or (actors is not None and actors.logs_in_anew),
        )
        own = rows(actors.users, actors.networks) if actors is not None else ()
        own_rows = tuple(own[turn] for turn in actors.turns()) if actors and own else ({},)

        def load(request: TrialRequest, terms: LoadTerms) -> Loaded:
            if isinstance(request.load, BandLoad):
                raise AssertionError("no runner of a task asks for a band")
            plan = CallPlan(
                self.function,
                request.load,
                dict(self.arguments),
                own_rows,
                own_settings,
                self.timeout_s,
                self.max_in_flight,
                drain_s=self.drain_s,
            )
            terms.on_begin()
            called = gate.call(plan, terms.allowance, terms.on_progress, terms.on_samples)
            return Loaded(
                called.measured.samples,
                called.measured.health,
                called.measured.interrupted,
                called.actions,
                tuple(as_failure(failure) for failure in called.failures),
                called.outputs,
                called.outputs_dropped,
            )

        sweep = SWEEPS.get(self.name)
        if actors is None or sweep is None:
            yield load
            return
        actors.note_security_groups(target.access)
        # An entry of this phase alone: its sweep does not look for what an earlier one left.
        made = with_prefix(own_settings["prefix"], sweep.made)
        actors.journal.create(made.kind, made.name, made.domain_id)
        try:
            yield load
        finally:
            if own:
                say("removing what the iterations left in other services")
                _sweep(sweep, own, own_settings, target, actors.journal, say)


def _sweep(
    sweep: Sweep,
    own: tuple[dict[str, str], ...],
    own_settings: Mapping[str, str],
    target: Target,
    journal: Journal,
    say: Say,
) -> None:
    """Remove as the users what iterations created; the admin's clean-up removes the rest."""
    load = ClosedLoad(min(SWEEPERS, len(own)), iterations=len(own))
    # Clean-up is no part of the load time that the user gave.
    allowance = Allowance(SWEEP_RPS, SWEEP_S, target.access.beyond_loopback)
    called = gate.call(CallPlan(sweep.function, load, {}, own, own_settings), allowance)
    health = called.measured.health
    if called.failures:
        say(f"  its users could not remove all of it: {called.failures[0].cause}")
    elif not (called.measured.interrupted or health.is_cut_short or health.is_broken_off):
        journal.removed(with_prefix(own_settings["prefix"], sweep.made))
    if called.measured.interrupted:
        # The admin's clean-up removes the rest; then the run ends.
        raise KeyboardInterrupt


def as_failure(failure: CallFailure) -> Failure:
    """Return a group of failed calls as one of failed iterations."""
    cause = f"{failure.action}: {failure.cause}"
    number = failure.iteration + 1
    message = f"{cause}; first in iteration {number}"
    kind = (failure.outcome, failure.status)
    return Failure(cause, failure.count, message, number, failure.action, *kind)
