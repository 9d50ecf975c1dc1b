"""What one workload does, ready to be set up and loaded."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from loadstone.analysis.performance import Failure
from loadstone.engine import local
from loadstone.engine.callables.model import PAUSE, Output
from loadstone.engine.ending import Look
from loadstone.engine.health import Health
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Watch
from loadstone.engine.samples import Samples
from loadstone.errors import InvalidInput
from loadstone.functions.catalogue import function_of
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.keystone.contexts.workload import Actors, contexts
from loadstone.keystone.identity import Identity
from loadstone.keystone.scenarios import Scenario
from loadstone.keystone.scenarios.rally import NOWHERE, Ground, is_data, needs_cloud, scenario
from loadstone.keystone.things import Token, User
from loadstone.perform.order import Job
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits
from loadstone.plan.runner import Pacing
from loadstone.plan.script import Pause
from loadstone.run import JOURNAL, Subject
from loadstone.store.store import Store
from loadstone.task.model import Workload

Say = Callable[[str], None]
# Rally's openstack_client_http_timeout: task files were written with its patience.
REQUEST_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load measured."""

    samples: Samples | SampleFile  # in memory; or in the file that it was given
    health: Health
    interrupted: bool  # by Ctrl-C


class Work(Protocol):
    """A workload that has been looked at and touches the cloud only when told to."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the samples' actions, once loaded."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is known of failures beside the samples, once loaded."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The charts that iterations gave, once loaded."""

    @property
    def outputs_dropped(self) -> int:
        """How many more they gave than are kept."""

    @property
    def requests_as_rally(self) -> bool:
        """Whether iterations send all that Rally sends."""

    def prepared(
        self, subject: Subject, run_id: str, store: Store, say: Say
    ) -> AbstractContextManager[None]:
        """Make what must exist; remove it at the end."""

    def load(self, subject: Subject, file: Path, watch: Watch, look: Look | None) -> Loaded:
        """Put the load on the target; samples may go to the file as they come."""


def ready(job: Job) -> Work:
    """Look at a workload; InvalidInput says why it cannot be carried out."""
    workload = job.workload
    name = workload.scenario.name
    place = f"{workload.file}:{workload.line}: {name}"
    if is_data(name):
        _require_form(place, job)
        return Script(job)
    function = function_of(name)
    if function is None:
        raise InvalidInput(f"{place} cannot be carried out yet")
    if job.placement.http != "1.1":
        raise InvalidInput(
            f"{place} is a Python function, which sends as its library does; leave out --http2"
        )
    # What worker processes need, the engine's scripts do without.
    from loadstone.engine.callables.run import require_room
    from loadstone.perform.call import Call

    require_room(place, job.pacing.load, job.pacing.max_in_flight)
    return Call(workload, job.pacing, function)


def _require_form(place: str, job: Job) -> None:
    """Refuse arguments that no cloud could make anything of, before anything is made."""
    wanted = job.workload.scenario
    try:
        scenario(wanted.name, wanted.arguments, NOWHERE, rally_requests=job.requests_as_rally)
    except InvalidInput as refused:
        raise InvalidInput(f"{place}: {refused}") from None


def made(
    workload: Workload, subject: Subject, run_id: str, store: Store, say: Say
) -> AbstractContextManager[Actors]:
    """Make what the workload's contexts say; the target's own people where it has such."""
    journal = store.folder(run_id) / JOURNAL
    existing = subject.people() if subject.people else ()
    return contexts(subject.access, run_id, workload.contexts, journal, say, existing)


@dataclass(slots=True)
class Script:
    """A scenario that the engine sends by itself."""

    job: Job
    failures: tuple[Failure, ...] = ()
    outputs: tuple[Output, ...] = ()
    outputs_dropped: int = 0
    _scenario: Scenario | None = field(default=None, init=False)
    _people: tuple[User, ...] = field(default=(), init=False, repr=False)
    _tokens: tuple[Token, ...] = field(default=(), init=False, repr=False)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the samples' actions."""
        steps = self._scenario.steps if self._scenario else ()
        return tuple(PAUSE if isinstance(step, Pause) else step.action for step in steps)

    @property
    def requests_as_rally(self) -> bool:
        """Whether iterations send all that Rally sends."""
        return self.job.requests_as_rally and needs_cloud(self.job.workload.scenario.name)

    @contextmanager
    def prepared(self, subject: Subject, run_id: str, store: Store, say: Say) -> Iterator[None]:
        """Make what the contexts say, and the tokens that iterations need."""
        with made(self.job.workload, subject, run_id, store, say) as actors:
            self._draw(subject, run_id, actors, say)
            yield

    def _draw(self, subject: Subject, run_id: str, actors: Actors, say: Say) -> None:
        """Say which iteration is made as whom."""
        ground = Ground(run_id, Identity(subject.access))
        wanted = self.job.workload.scenario
        self._scenario = scenario(
            wanted.name, wanted.arguments, ground, rally_requests=self.requests_as_rally
        )
        actors.announce(self._scenario)
        turns = actors.turns()
        self._people = tuple(actors.users[turn] for turn in turns)
        if self._scenario.needs_tokens:
            say(f"issuing {len(actors.users)} tokens")
            tokens = issue_tokens(subject.access, actors.users)
            self._tokens = tuple(tokens[turn] for turn in turns)

    def load(self, subject: Subject, file: Path, watch: Watch, look: Look | None) -> Loaded:
        """Send the load; memory does not grow with its samples."""
        if self._scenario is None:
            raise AssertionError("it is prepared before it is loaded")
        people, tokens = self._people, self._tokens
        load, allowed = self.job.pacing.load, limits(self.job.pacing)
        plan = compile_plan(self._scenario, subject.access, people, tokens, load, allowed)
        plan, actions = replace(plan, placement=self.job.placement), self.actions
        seeing = None if look is None else (lambda rows: look(rows, actions))
        done = local.run_to_file(plan, file, watch, seeing)
        return Loaded(done.file, done.health, done.interrupted)


def limits(pacing: Pacing) -> Limits:
    """Give what the engine may use for a runner."""
    patience_s = pacing.timeout_s or REQUEST_TIMEOUT_S
    connections = Limits().max_connections
    match pacing.load:
        case ClosedLoad(workers=workers):
            connections = workers
        case _ if pacing.max_in_flight is not None:
            connections = min(connections, pacing.max_in_flight)
        case _:
            pass
    return Limits(
        connections,
        request_timeout_s=patience_s,
        iteration_timeout_s=pacing.timeout_s,
        drain_s=patience_s,
    )
