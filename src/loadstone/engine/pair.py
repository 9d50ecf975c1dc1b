"""Two runs whose loads take turns: an engine for each, which waits for the other's load.

Each run measures its trials as any run does, in the same order of steps. Only the loads themselves
take place together. So at any time one of the two threads works and the other waits.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from loadstone.engine.local import LoadResult, Spilled
from loadstone.errors import MeasurementInvalid
from loadstone.system.clock import Clock

if TYPE_CHECKING:
    from loadstone.engine.progress import OnProgress, Progress
    from loadstone.engine.samples import Samples
    from loadstone.plan.model import Plan

T = TypeVar("T")
SEED_BITS = 63


class PairEngine(Protocol):
    """An engine that can load two targets in turns."""

    @property
    def clock(self) -> Clock:
        """The clock in which its loads take place."""

    def run_pair(
        self,
        plans: "tuple[Plan, Plan]",
        paths: tuple[Path, Path],
        on_progress: "tuple[OnProgress, OnProgress]",
    ) -> tuple[Spilled, Spilled]:
        """Send two plans in turns; samples go to files."""

    def failure(self) -> str | None:
        """Return why it can send no more load, or None."""


@dataclass(frozen=True, slots=True)
class _Load:
    plan: "Plan"
    path: Path
    on_progress: "OnProgress"


@dataclass(slots=True)
class Pair:
    """The engines of two runs, each load of the one together with a load of the other.

    `random` draws the seed of each pair of loads. Both have the same one, so both send the same
    requests of a mix, and the order of their turns is another one in each pair of loads.
    """

    engine: PairEngine
    random: Random
    _offered: "Future[_Load]" = field(default_factory=Future)  # by the first side
    _released: "Future[Spilled]" = field(default_factory=Future)  # the first side goes on
    _first: "Future[Any]" = field(default_factory=Future)  # its whole trial
    _carried: Spilled | None = None  # of the first side

    @property
    def sides(self) -> "tuple[SideEngine, SideEngine]":
        """The engine of each run, the first side's first."""
        return SideEngine(self.engine, self._offer), SideEngine(self.engine, self._carry_out)

    def measure(self, first: Callable[[], T], second: Callable[[], T]) -> tuple[T, T]:
        """Measure a trial of each run, whose loads take turns; each calls its engine once.

        Raises what either of them raises. The second runs in this thread, which gets signals.
        """
        self._offered, self._released, self._carried = Future(), Future(), None
        with ThreadPoolExecutor(1, thread_name_prefix="first side") as pool:
            self._first = pool.submit(first)
            try:
                of_second = second()
            finally:
                if self._carried is None:
                    ended = MeasurementInvalid("the other side of the comparison ended")
                    self._released.set_exception(ended)
                else:
                    self._released.set_result(self._carried)
            return self._first.result(), of_second

    def _offer(self, load: _Load) -> Spilled:
        """Offer the load of the first side; return what it measured once the second has ended."""
        self._offered.set_result(load)
        return self._released.result()

    def _carry_out(self, load: _Load) -> Spilled:
        """Carry out the loads of both sides; return what the second measured."""
        wait((self._offered, self._first), return_when=FIRST_COMPLETED)
        if not self._offered.done():
            self._first.result()  # raises the reason
            raise AssertionError("a trial has a load")
        first = self._offered.result()
        seed = self.random.getrandbits(SEED_BITS)
        self._carried, of_second = self.engine.run_pair(
            (replace(first.plan, seed=seed), replace(load.plan, seed=seed)),
            (first.path, load.path),
            (first.on_progress, load.on_progress),
        )
        return of_second


@dataclass(frozen=True, slots=True)
class SideEngine:
    """The engine of one of the two runs."""

    engine: PairEngine  # of both
    carry: "Callable[[_Load], Spilled]"

    @property
    def clock(self) -> Clock:
        """The clock in which loads take place."""
        return self.engine.clock

    def failure(self) -> str | None:
        """Return why no more load can be sent, or None."""
        return self.engine.failure()

    def run(self, _: "Plan", __: "OnProgress | None" = None) -> LoadResult:
        """Refuse: the samples of turns go to files."""
        raise AssertionError("loads in turns are kept in files")

    def run_to_file(
        self,
        plan: "Plan",
        path: Path,
        on_progress: "OnProgress | None" = None,
        on_samples: "Callable[[Samples], None] | None" = None,
    ) -> Spilled:
        """Send a plan in turns with the other side's; `on_samples` gets the samples at the end."""
        measured = self.carry(_Load(plan, path, on_progress or _go_on))
        if on_samples is not None:
            for rows in measured.file.groups():
                on_samples(rows)
        return measured


def _go_on(_: "Progress") -> bool:
    return True
