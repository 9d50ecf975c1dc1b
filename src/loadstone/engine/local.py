"""Runs a plan on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loadstone._engine import EngineUnusable, InvalidPlan, __version__
from loadstone._engine import run as run_in_rust
from loadstone._engine import spill as spill_in_rust
from loadstone.engine.ending import Ending
from loadstone.engine.health import Health
from loadstone.engine.limits import judged
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress, Watch
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.model import Plan

if TYPE_CHECKING:
    from loadstone._engine import _Columns, _Health

TICK_S = 0.1  # how often the watch looks; Ctrl-C is noticed as late


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run measured; what was measured before Ctrl-C is not lost."""

    samples: Samples
    health: Health
    interrupted: bool  # by Ctrl-C; the caller ends the program once it has kept the samples


def version() -> str:
    """Give the version of the Rust core."""
    return __version__


@dataclass(frozen=True, slots=True)
class Spilled:
    """What one long run measured: as `Measured`, its samples in a file."""

    file: SampleFile
    health: Health
    interrupted: bool


def run(plan: Plan, watch: Watch | None = None) -> Measured:
    """Send what the plan says, when it says so, until its end, `watch` or Ctrl-C stops it.

    Ctrl-C once stops the schedule and lets outstanding requests end (`Limits.drain_s`), twice
    gives them up. Samples are kept in memory, 38 bytes a request.
    """
    with explained():
        columns, told = run_in_rust(plan.to_json(), _counting(watch), TICK_S)
    return Measured(Samples(**columns), _health(told, plan), told["interrupted"])


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
    with explained():
        seeing = _counting(watch) if look is None else _showing(_counting(watch), look)
        _, told = spill_in_rust(plan.to_json(), path, seeing, TICK_S, look is not None)
    return Spilled(SampleFile(path), _health(told, plan), told["interrupted"])


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
        cpu_s=told["cpu_s"],
        wall_s=told["wall_s"],
        runqueue_wait_s=told["runqueue_wait_s"],
        threads=told["threads"],
        retries=told["retries"],
        connections=told["connections"],
        http=plan.placement.http,
    )
    return judged(health, plan.load)


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


def _showing(
    watch: Callable[[dict[str, int]], bool] | None, look: Callable[[Samples], None]
) -> Callable[[dict[str, int], "_Columns", NDArray[np.uint32]], bool]:
    """Show the iterations that have ended before the counts."""
    ending = Ending()

    def see(counts: dict[str, int], columns: "_Columns", ended: NDArray[np.uint32]) -> bool:
        look(ending.whole(Samples(**columns), ended))
        return watch is None or watch(counts)

    return see
