"""Interface of load generators."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.analysis.model import Failure
from loadstone.engine.callables.model import IterationOutput
from loadstone.engine.gate import LOCAL, Allowance, Engine
from loadstone.engine.health import Health
from loadstone.engine.iteration_buffer import OnSamples
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import OnProgress
from loadstone.engine.samples import Samples
from loadstone.keystone.contexts.workload import Actors
from loadstone.plan.model import Limits
from loadstone.plan.trace import Trace
from loadstone.search.model import TrialRequest
from loadstone.system.say import Say
from loadstone.target.target import Target


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of a load."""

    samples: Samples | SampleFile  # in memory, or in the file of `LoadTerms`
    health: Health
    interrupted: bool  # by Ctrl-C
    actions: tuple[str, ...]  # the names of the samples' actions
    failures: tuple[Failure, ...] = ()  # details of failures that samples do not have
    outputs: tuple[IterationOutput, ...] = ()  # charts from iterations
    outputs_dropped: int = 0
    trace: Trace | None = None  # requests that carried a `traceparent`; None: none


@dataclass(frozen=True, slots=True)
class LoadTerms:
    """Allowance, sample file, engine and callbacks of one load."""

    allowance: Allowance
    file: Path | None  # None: samples stay in memory
    # Called when all is prepared, right before the load: what is watched begins with it.
    on_begin: Callable[[], None]
    on_progress: OnProgress
    on_samples: OnSamples | None = None
    engine: Engine = LOCAL  # or a fleet
    trace: Trace | None = None  # requests that carry a `traceparent`; None: none
    # Of what is random in it: another one in each trial, so that all trials of a measurement do not
    # send the same few requests of a mix.
    seed: int = 0


Load = Callable[[TrialRequest, LoadTerms], Loaded]


@dataclass(frozen=True, slots=True)
class GeneratorPreview:
    """What an iteration sends and creates, as far as it is known without a target."""

    request: str | None = None  # None: only its name is known
    creates: tuple[str, ...] = ()  # kinds of resources
    needs: tuple[str, ...] = ()  # of each user, before the load
    limits: Limits | None = None


class LoadGenerator(Protocol):
    """A scenario that can be run on a target."""

    @property
    def needs_actors(self) -> bool:
        """Whether it needs users or a journal even without a context."""

    @property
    def is_sent_by_engine(self) -> bool:
        """Whether a fleet can send it, with a `traceparent`; else functions of this machine do."""

    @property
    def requests_as_rally(self) -> bool:
        """Whether iterations send the same requests as Rally."""

    @property
    def preview(self) -> GeneratorPreview:
        """What an iteration sends and creates."""

    def require_permitted(self, target: Target) -> None:
        """Refuse load on another machine that the user does not permit."""

    def require_usable(self, target: Target) -> None:
        """Refuse a target on which it cannot work, before anything is created."""

    def prepared(
        self, target: Target, run_id: str, actors: Actors | None, say: Say
    ) -> AbstractContextManager[Load]:
        """Prepare what iterations need, and yield the function that runs a load on the target."""
