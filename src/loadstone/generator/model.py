"""What a load generator is given, and what it returns."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.analysis.model import Failure
from loadstone.engine.callables.model import IterationOutput
from loadstone.engine.ending import Look
from loadstone.engine.health import Health
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Watch
from loadstone.engine.samples import Samples
from loadstone.gate import LOCAL, Allowance, Engine
from loadstone.keystone.contexts.workload import Actors
from loadstone.keystone.target import Target
from loadstone.search.model import TrialRequest

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load measured."""

    samples: Samples | SampleFile  # in memory; or in the file that it was given
    health: Health
    interrupted: bool  # by Ctrl-C
    actions: tuple[str, ...]  # the names of the samples' actions
    failures: tuple[Failure, ...] = ()  # what is known of failures beside the samples
    outputs: tuple[IterationOutput, ...] = ()  # charts that iterations gave
    outputs_dropped: int = 0


@dataclass(frozen=True, slots=True)
class LoadTerms:
    """How far one load may go, where its samples go, and who is told of its progress."""

    allowance: Allowance
    file: Path | None  # None: samples stay in memory
    on_progress: Watch
    on_samples: Look | None = None
    engine: Engine = LOCAL  # or a fleet


Load = Callable[[TrialRequest, LoadTerms], Loaded]


class LoadGenerator(Protocol):
    """One scenario, ready to be put on a target."""

    @property
    def needs_actors(self) -> bool:
        """Whether it needs users or a journal even where no context is asked for."""

    @property
    def can_use_fleet(self) -> bool:
        """Whether a fleet can send it; Python functions run on this machine only."""

    @property
    def requests_as_rally(self) -> bool:
        """Whether iterations send all that Rally sends."""

    def require_permitted(self, target: Target) -> None:
        """Refuse load on another machine that the user does not permit."""

    def require_usable(self, target: Target) -> None:
        """Refuse what could only fail, before anything is made."""

    def prepared(
        self, target: Target, run_id: str, actors: Actors | None, say: Say
    ) -> AbstractContextManager[Load]:
        """Prepare what iterations need, and return the function that puts a load on the target."""
