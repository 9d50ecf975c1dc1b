"""A workload whose iterations are calls of a Python function, in worker processes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.analysis.performance import Failure
from loadstone.engine.callables import run as callables
from loadstone.engine.callables.model import CallPlan, Function, Output
from loadstone.engine.callables.model import Failure as CallFailure
from loadstone.engine.ending import Look
from loadstone.engine.outcome import Outcome
from loadstone.engine.progress import Watch
from loadstone.errors import EnvironmentUnusable
from loadstone.functions.actor import rows, settings
from loadstone.functions.catalogue import service_of, sweep_of
from loadstone.keystone.journal import Journal
from loadstone.keystone.things import iteration_prefix, of_iterations
from loadstone.perform.work import Loaded, Say, made
from loadstone.plan.load import BandLoad, ClosedLoad
from loadstone.plan.runner import Pacing
from loadstone.run import Subject
from loadstone.store.store import Store
from loadstone.task.model import Workload

SWEEPERS = 8  # users whose leftovers are removed at a time


@dataclass(slots=True)
class Call:
    """A scenario that is a Python function."""

    workload: Workload
    pacing: Pacing
    function: Function
    actions: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    outputs: tuple[Output, ...] = ()
    outputs_dropped: int = 0
    requests_as_rally: bool = False  # a function sends what its library sends
    _rows: tuple[Mapping[str, str], ...] = field(default=({},), init=False, repr=False)
    _settings: Mapping[str, str] = field(default_factory=dict, init=False, repr=False)

    @contextmanager
    def prepared(self, subject: Subject, run_id: str, store: Store, say: Say) -> Iterator[None]:
        """Make what the contexts say; remove what iterations left in other services, too."""
        self._require_service(subject)
        self._settings = settings(subject.access, iteration_prefix(run_id))
        wanted = self.workload.contexts
        if not wanted:
            yield
            return
        with made(self.workload, subject, run_id, store, say) as actors:
            own = rows(actors.users)
            if own:
                self._rows = tuple(own[turn] for turn in actors.turns())
            self._announce(actors.journal)
            try:
                yield
            finally:
                self._sweep(own, actors.journal, say)

    def _require_service(self, subject: Subject) -> None:
        """Refuse what could only fail, before anything is made."""
        name = self.workload.scenario.name
        needed = service_of(name)
        if needed is not None and subject.access.service_url(needed) is None:
            raise EnvironmentUnusable(
                f"{self.workload.file}:{self.workload.line}: {name} needs a service of type "
                f"{needed}, and the catalog of {subject.access.identity_url} has none"
            )

    def _announce(self, journal: Journal) -> None:
        """Put into the journal what iterations will make."""
        sweep = sweep_of(self.workload.scenario.name)
        if sweep is not None:
            thing = of_iterations(journal.run_id, sweep.made)
            journal.create(thing.kind, thing.name, thing.domain_id)

    def load(
        self,
        subject: Subject,  # noqa: ARG002 (Work's face)
        file: Path,  # noqa: ARG002
        watch: Watch,
        look: Look | None,
    ) -> Loaded:
        """Call the function as often as the runner says."""
        load = self.pacing.load
        if isinstance(load, BandLoad):
            raise AssertionError("no runner of a task asks for a band")
        plan = CallPlan(
            self.function,
            load,
            dict(self.workload.scenario.arguments),
            self._rows,
            self._settings,
            self.pacing.timeout_s,
            self.pacing.max_in_flight,
        )
        called = callables.run(plan, watch, look)
        self.actions = called.actions
        self.failures = tuple(_failure(failure) for failure in called.failures)
        self.outputs, self.outputs_dropped = called.outputs, called.outputs_dropped
        done = called.measured
        return Loaded(done.samples, done.health, done.interrupted)

    def _sweep(self, own: tuple[dict[str, str], ...], journal: Journal, say: Say) -> None:
        """Remove as the users what iterations made; what stays, the admin's clean-up is left."""
        sweep = sweep_of(self.workload.scenario.name)
        if sweep is None or not own:
            return
        say("removing what the iterations left in other services")
        load = ClosedLoad(min(SWEEPERS, len(own)), iterations=len(own))
        called = callables.run(CallPlan(sweep.function, load, {}, own, self._settings))
        if called.failures or called.measured.interrupted:
            causes = [failure.cause for failure in called.failures]
            say(f"  its users could not remove all of it: {(*causes, 'interrupted')[0]}")
        else:
            journal.removed(of_iterations(journal.run_id, sweep.made))


def _failure(failure: CallFailure) -> Failure:
    cause = f"{failure.action}: {failure.cause}"
    message = f"{cause}; first in iteration {failure.iteration + 1}"
    number = failure.iteration + 1
    return Failure(cause, failure.count, message, number, failure.action, Outcome.RAISED, 0)
