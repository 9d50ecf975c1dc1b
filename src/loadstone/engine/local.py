"""Runs a plan on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from loadstone._engine import EngineUnusable, InvalidPlan
from loadstone._engine import prepare as prepare_in_rust
from loadstone.engine.ending import Ending
from loadstone.engine.health import Health
from loadstone.engine.histogram import Histogram
from loadstone.engine.limits import judged
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress, Watch
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.model import Plan

if TYPE_CHECKING:
    from loadstone._engine import Prepared as _Prepared
    from loadstone._engine import _Columns, _Health

TICK_S = 0.1  # how often the watch looks; Ctrl-C is noticed as late


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What one run measured; what was measured before Ctrl-C is not lost."""

    samples: Samples
    health: Health
    interrupted: bool  # by Ctrl-C; the caller ends the program once it has kept the samples


@dataclass(frozen=True, slots=True)
class Spilled:
    """What one long run measured: as `Measured`, its samples in a file."""

    file: SampleFile
    health: Health
    interrupted: bool


T = TypeVar("T")

# Is given rows as they are measured, and the numbers of the iterations that have ended since.
Take = Callable[[Samples, NDArray[np.uint32]], None]


@dataclass(frozen=True, slots=True)
class PreparedRun(Generic[T]):
    """A plan whose run was prepared: it is started at an instant, watched, and stopped.

    As a context manager it gives the run up on the way out, unless it has ended.
    """

    _run: "_Prepared"
    _measured: "Callable[[_Columns | int, _Health], T]"
    _take: Take | None = None

    def start(self, at_ns: int | None = None) -> None:
        """Start the load at an instant (nanoseconds since 1970, `time.time_ns()`), or at once.

        Engines on several machines are given the same instant; their clocks must agree. An instant
        in the past is refused.
        """
        with explained():
            self._run.start(at_ns)

    def stop_at(self, due_ns: int) -> None:
        """Stop the schedule: nothing that is due at `due_ns` or later begins, all before it does.

        `due_ns` counts from the start, as `Samples.due_ns`; all parts of a load that are given the
        same one end at the same iteration. An instant that has come is refused. May be called from
        any thread.
        """
        with explained():
            self._run.stop_at(due_ns)

    def finish(self, watch: Watch | None = None) -> T:
        """Wait for the end and return what was measured.

        `watch` and Ctrl-C stop the run as they stop `run`.
        """
        counting = _counting(watch)
        with explained():
            seeing = counting if self._take is None else _showing(counting, self._take)
            return self._measured(*self._run.finish(seeing, TICK_S))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run.abandon()


def prepare(plan: Plan) -> PreparedRun[LoadResult]:
    """Do all that comes before the first request; the load waits for `Prepared.start`.

    The host is looked up, files are read, requests laid out, threads started, memory is set aside
    and connections are opened: one for each worker of a closed loop, else one a thread. A target
    that cannot be connected to is refused. Samples are kept in memory.
    """
    return _prepared(plan, connected=True)


def prepare_streamed(plan: Plan, take: Take) -> PreparedRun[LoadResult]:
    """Prepare a run as `prepare` does; `take` is given its samples as they come, none are kept.

    The result has no rows. `take` is called before each `watch`, and once more at the end.
    """

    def measured(columns: "_Columns | int", told: "_Health") -> LoadResult:
        if (rest := made.fresh()) is not None:
            take(Samples(**rest[0]), rest[1])
        return LoadResult(
            Samples(**cast("_Columns", columns)), _health(told, plan), told["interrupted"]
        )

    with explained():
        made = prepare_in_rust(plan.to_json(), None, shown=True, connected=True)
    return PreparedRun(made, measured, take)


def prepare_to_file(
    plan: Plan, path: Path, look: Callable[[Samples], None] | None = None
) -> PreparedRun[Spilled]:
    """Prepare a run as `prepare` does; its samples go to a file as those of `run_to_file`."""
    return _prepared_to_file(plan, path, look, connected=True)


def run(plan: Plan, watch: Watch | None = None) -> LoadResult:
    """Send what the plan says, when it says so, until its end, `watch` or Ctrl-C stops it.

    Ctrl-C once stops the schedule and lets outstanding requests end (`Limits.drain_s`), twice
    gives them up. Samples are kept in memory, 43 bytes a request.
    """
    with _prepared(plan, connected=False) as prepared:
        prepared.start()
        return prepared.finish(watch)


def run_to_file(
    plan: Plan,
    path: Path,
    watch: Watch | None = None,
    look: Callable[[Samples], None] | None = None,
) -> Spilled:
    """Run a plan as `run` does; samples go to a Parquet file as they come, and memory stays flat.

    Before each `watch`, `look` is given the rows of the iterations that have ended since.

    Until the file is complete, what was measured lies beside it (`parquet.SampleFile` finds it).
    A disk that is full ends the run; one that is too slow makes the generator late, which its
    health says.
    """
    with _prepared_to_file(plan, path, look, connected=False) as prepared:
        prepared.start()
        return prepared.finish(watch)


def failure() -> str | None:
    """Return why this machine can load no more: never, it is here."""
    return None


def _prepared(plan: Plan, *, connected: bool) -> PreparedRun[LoadResult]:
    def measured(columns: "_Columns | int", told: "_Health") -> LoadResult:
        return LoadResult(
            Samples(**cast("_Columns", columns)), _health(told, plan), told["interrupted"]
        )

    with explained():
        made = prepare_in_rust(plan.to_json(), None, shown=False, connected=connected)
    return PreparedRun(made, measured)


def _prepared_to_file(
    plan: Plan, path: Path, look: Callable[[Samples], None] | None, *, connected: bool
) -> PreparedRun[Spilled]:
    def measured(_: "_Columns | int", told: "_Health") -> Spilled:
        return Spilled(SampleFile(path), _health(told, plan), told["interrupted"])

    shown = look is not None
    with explained():
        made = prepare_in_rust(plan.to_json(), path, shown=shown, connected=connected)
    return PreparedRun(made, measured, None if look is None else _of_ended(look))


@contextmanager
def explained() -> Iterator[None]:
    """Raise the engine's refusals as the errors that users are shown."""
    try:
        yield
    except InvalidPlan as error:
        raise InvalidInput(str(error)) from None
    except EngineUnusable as error:
        raise EnvironmentUnusable(str(error)) from None


def _health(told: "_Health", plan: Plan) -> Health:
    health = Health(
        lag_p50_ms=told["lag_p50_ms"],
        lag_p99_ms=told["lag_p99_ms"],
        lag_max_ms=told["lag_max_ms"],
        waited=told["waited"],
        wait_p99_ms=told["wait_p99_ms"],
        wait_max_ms=told["wait_max_ms"],
        cpu_s=told["cpu_s"],
        wall_s=told["wall_s"],
        runqueue_wait_s=told["runqueue_wait_s"],
        threads=told["threads"],
        retries=told["retries"],
        connections=told["connections"],
        without_port=told["without_port"],
        http=plan.placement.http,
        throttled=told["throttled"],
        throttled_s=told["throttled_s"],
        is_cut_short=told["is_cut_short"],
        tls_resumption=plan.resumes_tls,
        lag=Histogram(tuple(told["lag_buckets"]), round(told["lag_max_ms"] * 1e6)),
        wait=Histogram(tuple(told["wait_buckets"]), round(told["wait_max_ms"] * 1e6)),
    )
    return judged(health, plan.load, plan.limits.max_rate_rps)


def _counting(watch: Watch | None) -> Callable[[dict[str, int]], bool] | None:
    """Turn the engine's sums into what a watch is shown."""
    if watch is None:
        return None
    ended_before = latency_before_ns = 0

    def look(counts: dict[str, int]) -> bool:
        nonlocal ended_before, latency_before_ns
        ended = counts["ok"] + counts["failed"]
        latency_ns = counts["latency_sum_ns"] - latency_before_ns
        fresh = ended - ended_before
        ended_before, latency_before_ns = ended, counts["latency_sum_ns"]
        return watch(
            Progress(
                elapsed_s=counts["elapsed_ns"] / 1e9,
                due=counts["due"],
                sent=counts["sent"],
                ok=counts["ok"],
                failed=counts["failed"],
                latency_ms=latency_ns / fresh / 1e6 if fresh else 0.0,
            )
        )

    return look


def _of_ended(look: Callable[[Samples], None]) -> Take:
    """Show whole iterations."""
    ending = Ending()
    return lambda rows, ended: look(ending.whole(rows, ended))


def _showing(
    watch: Callable[[dict[str, int]], bool] | None, take: Take
) -> Callable[[dict[str, int], "_Columns", NDArray[np.uint32]], bool]:
    """Show the rows before the counts."""

    def see(counts: dict[str, int], columns: "_Columns", ended: NDArray[np.uint32]) -> bool:
        take(Samples(**columns), ended)
        return watch is None or watch(counts)

    return see
