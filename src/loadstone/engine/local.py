"""Runs a plan on this machine."""

from collections.abc import Callable
from dataclasses import dataclass

from loadstone._engine import EngineUnusable, InvalidPlan, __version__
from loadstone._engine import run as run_in_rust
from loadstone.engine.health import Health
from loadstone.engine.limits import judged
from loadstone.engine.progress import Progress, Watch
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.model import Plan

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


def run(plan: Plan, watch: Watch | None = None) -> Measured:
    """Send what the plan says, when it says so, until its end, `watch` or Ctrl-C stops it.

    Ctrl-C once stops the schedule and lets outstanding requests end (`Limits.drain_s`), twice
    gives them up.
    """
    try:
        columns, told = run_in_rust(plan.to_json(), _counting(watch), TICK_S)
    except InvalidPlan as error:
        raise InvalidInput(str(error)) from None
    except EngineUnusable as error:
        raise EnvironmentUnusable(str(error)) from None
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
    )
    return Measured(Samples(**columns), judged(health, plan.load), told["interrupted"])


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
