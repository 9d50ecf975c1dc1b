"""Compiles a task's runner to the load of the engine."""

from dataclasses import dataclass
from math import sqrt
from typing import assert_never

from loadstone.plan.load import ClosedLoad, Load, OpenLoad, ReplayLoad, Stage, StagedLoad
from loadstone.rally.task.model import Constant, ConstantForDuration, Ramp, Rps, Runner, Serial


@dataclass(frozen=True, slots=True)
class Pacing:
    """The load, the time-out of an iteration, and the limit on iterations in flight."""

    load: Load
    timeout_s: float | None = None
    max_in_flight: int | None = None


def pacing(runner: Runner, rally_processes: int | None = None) -> Pacing:
    """Return the pacing for a runner.

    With `rally_processes` a rate is paced as Rally does in that many processes (it takes
    min(CPUs, max_cpu_count, times, max_concurrency) of them), for comparison like for like.
    """
    match runner:
        case Constant():
            closed = ClosedLoad(runner.concurrency, iterations=runner.times)
            return Pacing(closed, runner.timeout_s)
        case ConstantForDuration(duration_s=0):
            closed = ClosedLoad(runner.concurrency, iterations=runner.concurrency)
            return Pacing(closed, runner.timeout_s)
        case ConstantForDuration():
            closed = ClosedLoad(runner.concurrency, duration_s=runner.duration_s)
            return Pacing(closed, runner.timeout_s)
        case Serial():
            return Pacing(ClosedLoad(1, iterations=runner.times))
        case Rps():
            load = _open(runner) if rally_processes is None else as_rally(runner, rally_processes)
            return Pacing(load, runner.timeout_s, runner.max_concurrency)
        case _:
            assert_never(runner)


def _open(runner: Rps) -> Load:
    match runner.rate:
        case Ramp() as ramp:
            return StagedLoad(stairs(ramp, runner.times), iterations=runner.times)
        case rate:
            # Iteration i is due at i / rate: half an interval before the next, `times` are due.
            return OpenLoad(rate, (runner.times - 0.5) / rate)


def stairs(ramp: Ramp, times: int) -> tuple[Stage, ...]:
    """Return the stages of a rate that rises in steps until `times` iterations are due."""
    stages: list[Stage] = []
    remaining = float(times)
    while remaining > 0:
        rate_rps = min(ramp.start_rps + len(stages) * ramp.step_rps, ramp.end_rps)
        is_top = rate_rps >= ramp.end_rps
        lasts_s = remaining / rate_rps if is_top else min(ramp.stage_s, remaining / rate_rps)
        stages.append(Stage(lasts_s, rate_rps, rate_rps))
        remaining = 0.0 if lasts_s == remaining / rate_rps else remaining - rate_rps * lasts_s
    return tuple(stages)


def as_rally(runner: Rps, processes: int) -> ReplayLoad:
    """Return the instants at which Rally 5.1's rps runner starts iterations, if nothing delays it.

    Each of n processes begins 1 / (start rate * n) after the one before and starts its iteration
    i + 1 as soon as i / elapsed <= r(elapsed): it keeps the average since its start. A ramp's r is
    min((start + step * (elapsed / stage - 1)) / n, end), so that the rate grows twice as fast as
    the file says, and to n times `end`. (rally/plugins/task/runners/rps.py)
    """
    first_rps = runner.rate.start_rps if isinstance(runner.rate, Ramp) else runner.rate
    offsets_s: list[float] = []
    for process in range(processes):
        times = runner.times // processes + (process < runner.times % processes)
        begins_s = process / (first_rps * processes)
        offsets_s += [begins_s + _elapsed_s(runner.rate, i, processes) for i in range(times)]
    return ReplayLoad(tuple(sorted(offsets_s)))


def _elapsed_s(rate: float | Ramp, started: int, processes: int) -> float:
    """Return the first instant at which started / elapsed <= r(elapsed)."""
    match rate:
        case _ if started == 0:
            return 0.0
        case Ramp():
            first, slope = rate.start_rps - rate.step_rps, rate.step_rps / rate.stage_s
            # elapsed * (first + slope * elapsed) = started * processes
            root = sqrt(first * first + 4 * slope * started * processes)
            elapsed_s = (root - first) / (2 * slope)
            is_below = (first + slope * elapsed_s) / processes <= rate.end_rps
            return elapsed_s if is_below else started / rate.end_rps
        case rps:
            return started * processes / rps
