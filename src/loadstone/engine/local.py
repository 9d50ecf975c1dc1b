"""Runs a plan on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from loadstone._engine import EngineUnusable, InvalidPlan
from loadstone._engine import prepare as prepare_in_rust
from loadstone._engine import prepare_pair as prepare_pair_in_rust
from loadstone.engine.health import Health
from loadstone.engine.histogram import Histogram
from loadstone.engine.iteration_buffer import IterationBuffer
from loadstone.engine.limits import judged
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import OnProgress, Progress
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.load import ClosedLoad, Load
from loadstone.plan.model import Plan
from loadstone.system.clock import SYSTEM

if TYPE_CHECKING:
    from loadstone._engine import Prepared as _Prepared
    from loadstone._engine import _Columns, _Health

TICK_S = 0.1  # interval of `on_progress`; Ctrl-C takes effect within it
clock = SYSTEM


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Samples of one run in memory, with the health of the generator."""

    samples: Samples
    health: Health
    interrupted: bool  # by Ctrl-C; the caller ends the program once it has kept the samples


@dataclass(frozen=True, slots=True)
class Spilled:
    """Samples of one run in a file, with the health of the generator."""

    file: SampleFile
    health: Health
    interrupted: bool


T = TypeVar("T")

# Called with rows as they are measured, and the numbers of the iterations that have ended since.
RowSink = Callable[[Samples, NDArray[np.uint32]], None]


@dataclass(frozen=True, slots=True)
class PreparedRun(Generic[T]):
    """A prepared run of a plan, which can be started at an instant and stopped.

    As a context manager it abandons the run on exit, unless it has ended.
    """

    _run: "_Prepared"
    _measured: "Callable[[_Columns | int, _Health], T]"
    _sink: RowSink | None = None

    def start(self, at_ns: int | None = None) -> None:
        """Start the load at an instant (nanoseconds since 1970, `time.time_ns()`), or at once.

        Engines on several machines start at the same instant if their clocks agree. An instant in
        the past is refused.
        """
        with map_engine_errors():
            self._run.start(at_ns)

    def stop_at(self, due_ns: int) -> None:
        """Stop the schedule: nothing that is due at `due_ns` or later begins, all before it does.

        `due_ns` counts from the start, as `Samples.due_ns`; all parts of a load that stop at the
        same one end at the same iteration. An instant that has come is refused. May be called from
        any thread.
        """
        with map_engine_errors():
            self._run.stop_at(due_ns)

    def finish(self, on_progress: OnProgress | None = None) -> T:
        """Wait for the end and return what was measured.

        `on_progress` and Ctrl-C stop the run as they stop `run`.
        """
        counting = None if on_progress is None else _progress_callback(on_progress, self._run)
        with map_engine_errors():
            seeing = counting if self._sink is None else _rows_then_counts(counting, self._sink)
            return self._measured(*self._run.finish(seeing, TICK_S))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run.abandon()


def prepare(plan: Plan, *, connect: bool = True) -> PreparedRun[LoadResult]:
    """Do all that comes before the first request; the load waits for `PreparedRun.start`.

    The host is looked up, files are read, requests built, threads started, memory allocated and
    with `connect` connections opened: one for each worker of a closed loop, else one per thread. A
    target that does not accept a connection is refused. Samples are kept in memory.
    """
    with map_engine_errors():
        prepared = prepare_in_rust(plan.to_json(), None, live=False, connect=connect)
    return PreparedRun(prepared, partial(_in_memory, plan))


def prepare_streamed(plan: Plan, sink: RowSink) -> PreparedRun[LoadResult]:
    """Prepare a run as `prepare` does; its samples are passed to `sink`, and none are kept.

    The result has no rows. `sink` is called before each `on_progress`, and once more at the end.
    """

    def measured(columns: "_Columns | int", figures: "_Health") -> LoadResult:
        if (rest := prepared.live_samples()) is not None:
            sink(Samples(**rest[0]), rest[1])
        return _in_memory(plan, columns, figures)

    with map_engine_errors():
        prepared = prepare_in_rust(plan.to_json(), None, live=True, connect=True)
    return PreparedRun(prepared, measured, sink)


def run(plan: Plan, on_progress: OnProgress | None = None) -> LoadResult:
    """Run a plan to its end, or until `on_progress` or Ctrl-C stops it.

    The first Ctrl-C stops the schedule and lets outstanding requests end (`Limits.drain_s` or
    `stopped_drain_s`), the second abandons them. Samples are kept in memory, 43 bytes per request.
    """
    with prepare(plan, connect=False) as prepared:
        prepared.start()
        return prepared.finish(on_progress)


def run_to_file(
    plan: Plan,
    path: Path,
    on_progress: OnProgress | None = None,
    on_samples: Callable[[Samples], None] | None = None,
) -> Spilled:
    """Run a plan as `run` does; samples go to a Parquet file, so memory does not grow with them.

    Before each `on_progress`, `on_samples` gets the rows of the iterations that have ended since.

    Until the file is complete, samples are in files beside it, which `parquet.SampleFile` reads. A
    full disk ends the run; a slow one makes the generator late, which `Health` reports.
    """

    def measured(_: "_Columns | int", figures: "_Health") -> Spilled:
        return Spilled(SampleFile(path), _health(figures, plan), figures["interrupted"])

    sink = None if on_samples is None else _whole_iterations(on_samples)
    with map_engine_errors():
        run = prepare_in_rust(plan.to_json(), path, live=sink is not None, connect=False)
    with PreparedRun(run, measured, sink) as prepared:
        prepared.start()
        return prepared.finish(on_progress)


def run_pair(
    plans: tuple[Plan, Plan],
    paths: tuple[Path, Path],
    on_progress: tuple[OnProgress, OnProgress],
) -> tuple[Spilled, Spilled]:
    """Run two closed loops that take turns; `ClosedLoad.turn` says how many iterations a turn has.

    Turns come in pairs, one of each side, in an order that is random by the first plan's seed. The
    times of both are counted from the same start. Whatever ends one of them ends the other, too.
    """
    (a, b), (path_a, path_b) = plans, paths
    with map_engine_errors():
        one, other = prepare_pair_in_rust(a.to_json(), path_a, b.to_json(), path_b)
    with PreparedRun(one, _nothing), PreparedRun(other, _nothing):
        first, second = map(_progress_callback, on_progress, (one, other))

        def watch(counts: dict[str, int]) -> bool:
            return all([first(counts), second(other.counts())])  # both are told

        with map_engine_errors():
            one.start_with(other)
            # The end of the first ends the second: it waits for a turn that does not come.
            (_, of_one), (_, of_other) = one.finish(watch, TICK_S), other.finish(None, TICK_S)
    interrupted = of_one["interrupted"] or of_other["interrupted"]
    return (
        Spilled(SampleFile(path_a), _health(of_one, a), interrupted),
        Spilled(SampleFile(path_b), _health(of_other, b), interrupted),
    )


def _nothing(*_: object) -> None:
    """Return nothing: the run is only given up."""


def failure() -> str | None:
    """Return None: the local engine cannot be lost, as a host of a fleet can."""
    return None


def _in_memory(plan: Plan, columns: "_Columns | int", figures: "_Health") -> LoadResult:
    samples = Samples(**cast("_Columns", columns))
    return LoadResult(samples, _health(figures, plan), figures["interrupted"])


@contextmanager
def map_engine_errors() -> Iterator[None]:
    """Convert the Rust engine's exceptions to InvalidInput and EnvironmentUnusable."""
    try:
        yield
    except InvalidPlan as error:
        raise InvalidInput(str(error)) from None
    except EngineUnusable as error:
        raise EnvironmentUnusable(str(error)) from None


def _health(figures: "_Health", plan: Plan) -> Health:
    health = Health(
        lag_p50_ms=figures["lag_p50_ms"],
        lag_p99_ms=figures["lag_p99_ms"],
        lag_max_ms=figures["lag_max_ms"],
        waited=figures["waited"],
        wait_p99_ms=figures["wait_p99_ms"],
        wait_max_ms=figures["wait_max_ms"],
        cpu_s=figures["cpu_s"],
        wall_s=figures["wall_s"],
        runqueue_wait_s=figures["runqueue_wait_s"],
        threads=figures["threads"],
        retries=figures["retries"],
        connections=figures["connections"],
        without_port=figures["without_port"],
        without_file=figures["without_file"],
        http=plan.placement.http,
        throttled=figures["throttled"],
        throttled_s=figures["throttled_s"],
        is_cut_short=figures["is_cut_short"],
        tls_resumption=plan.resumes_tls,
        lag=Histogram(tuple(figures["lag_buckets"]), round(figures["lag_max_ms"] * 1e6)),
        wait=Histogram(tuple(figures["wait_buckets"]), round(figures["wait_max_ms"] * 1e6)),
    )
    return judged(health, _own_load(plan), plan.limits.max_rate_rps)


def _own_load(plan: Plan) -> Load:
    """Return the load with the workers that this part of it has."""
    load, placement = plan.load, plan.placement
    if not isinstance(load, ClosedLoad) or placement.parts == 1:
        return load
    own = len(range(placement.part, load.workers, placement.parts))
    return replace(load, workers=max(1, own))


def _progress_callback(
    on_progress: OnProgress, run: "_Prepared"
) -> Callable[[dict[str, int]], bool]:
    """Return a callback that converts the engine's counts to `Progress`."""
    ended_before = latency_before_ns = 0

    def callback(counts: dict[str, int]) -> bool:
        nonlocal ended_before, latency_before_ns
        ended = counts["ok"] + counts["failed"]
        latency_ns = counts["latency_sum_ns"] - latency_before_ns
        fresh = ended - ended_before
        ended_before, latency_before_ns = ended, counts["latency_sum_ns"]
        return on_progress(
            Progress(
                elapsed_s=counts["elapsed_ns"] / 1e9,
                due=counts["due"],
                sent=counts["sent"],
                ok=counts["ok"],
                failed=counts["failed"],
                latency_ms=latency_ns / fresh / 1e6 if fresh else 0.0,
                latencies=tuple(run.latencies()),
                lag_p99_ms=counts["lag_p99_ns"] / 1e6,
                cut_off=counts["cut_off"],
            )
        )

    return callback


def _whole_iterations(on_samples: Callable[[Samples], None]) -> RowSink:
    """Return a sink that passes on the rows of ended iterations only."""
    buffer = IterationBuffer()
    return lambda rows, ended: on_samples(buffer.add(rows, ended))


def _rows_then_counts(
    on_progress: Callable[[dict[str, int]], bool] | None, sink: RowSink
) -> Callable[[dict[str, int], "_Columns", NDArray[np.uint32]], bool]:
    """Return a callback that passes on the rows before the counts."""

    def callback(counts: dict[str, int], columns: "_Columns", ended: NDArray[np.uint32]) -> bool:
        sink(Samples(**columns), ended)
        return on_progress is None or on_progress(counts)

    return callback
