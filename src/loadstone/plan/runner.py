"""A task's runner as the load that the engine makes."""

from dataclasses import dataclass
from typing import assert_never

from loadstone.plan.load import ClosedLoad, Load, OpenLoad
from loadstone.task.model import Constant, ConstantForDuration, Ramp, Rps, Runner, Serial


@dataclass(frozen=True, slots=True)
class Pacing:
    """How hard, how long an iteration may take, and how many may be in flight."""

    load: Load
    timeout_s: float | None = None
    max_in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class NotYet:
    """What the engine cannot make yet, in words."""

    words: str


def pacing(runner: Runner) -> Pacing | NotYet:
    """Say how the engine drives what the runner asks for."""
    match runner:
        case Constant():
            load = ClosedLoad(runner.concurrency, iterations=runner.times)
            return Pacing(load, runner.timeout_s)
        case ConstantForDuration():
            return Pacing(_for_duration(runner), runner.timeout_s)
        case Serial():
            return Pacing(ClosedLoad(1, iterations=runner.times))
        case Rps():
            return _rps(runner)
        case _:
            assert_never(runner)


def _for_duration(runner: ConstantForDuration) -> Load:
    if runner.duration_s == 0:
        return ClosedLoad(runner.concurrency, iterations=runner.concurrency)
    return ClosedLoad(runner.concurrency, duration_s=runner.duration_s)


def _rps(runner: Rps) -> Pacing | NotYet:
    match runner.rate:
        case Ramp(start_rps=start, end_rps=end):
            return NotYet(
                f"the engine cannot make a rate that rises from {start:g} to {end:g} per second "
                "yet; give rps as one number"
            )
        case rate:
            # Iteration i is due at i / rate: half an interval before the next, `times` are due.
            duration_s = (runner.times - 0.5) / rate
            return Pacing(OpenLoad(rate, duration_s), runner.timeout_s, runner.max_concurrency)
