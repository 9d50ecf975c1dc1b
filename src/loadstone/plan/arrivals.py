"""Due times of an open loop, identical to those of the Rust pacer, for Python callers."""

import itertools
import math
from collections.abc import Iterator
from typing import assert_never

from loadstone.plan.load import OpenLoad, OpenLoop, ReplayLoad, Stage, StagedLoad

_ROUNDING = 1e-9  # tolerance for sums of stages
_MASK = (1 << 64) - 1


def due_s(load: OpenLoop) -> Iterator[float]:
    """Yield the due instants in seconds from the start."""
    match load:
        case OpenLoad():
            stage = Stage(load.duration_s, load.rate_rps, load.rate_rps)
            return due_s(StagedLoad((stage,), load.arrivals, load.seed, load.iterations))
        case StagedLoad():
            return _staged(load)
        case ReplayLoad():
            return iter(load.offsets_s)
        case _:
            assert_never(load)


def _staged(load: StagedLoad) -> Iterator[float]:
    pieces = _pieces(load.stages)
    counts = itertools.count(0.0) if load.arrivals == "constant" else _poisson(load.seed)
    index, end_s = 0, load.duration_s
    for number, count in enumerate(counts):
        # The last stage that has begun by then, so iterations fall after a stage at rate 0.
        while index + 1 < len(pieces) and pieces[index + 1][1] <= count + _ROUNDING:
            index += 1
        begins_s, before, stage = pieces[index]
        at_s = begins_s + _within_s(stage, count - before)
        is_past = count + _ROUNDING >= pieces[-1][1] or at_s >= end_s
        if is_past or (load.iterations is not None and number >= load.iterations):
            return
        yield at_s


def _pieces(stages: tuple[Stage, ...]) -> list[tuple[float, float, Stage]]:
    """Return (start, iterations due before it, stage) for each stage and for the end."""
    pieces, begins_s, before = [], 0.0, 0.0
    for stage in stages:
        pieces.append((begins_s, before, stage))
        begins_s += stage.duration_s
        before += stage.count
    return [*pieces, (begins_s, before, Stage(math.inf, 1.0, 1.0))]


def _within_s(stage: Stage, left: float) -> float:
    """Return when `left` iterations of the stage are due: the root of from t + slope t^2 / 2."""
    if left <= 0:
        return 0.0
    slope = (stage.to_rps - stage.from_rps) / stage.duration_s
    square = stage.from_rps * stage.from_rps + 2 * slope * left
    return 2 * left / (stage.from_rps + math.sqrt(max(square, 0.0)))


def _poisson(seed: int) -> Iterator[float]:
    drawn, state = 0.0, seed & _MASK
    while True:
        # SplitMix64 (Steele, Lea, Flood 2014), as in the engine: the same seed, the same schedule.
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        drawn += -math.log((((mixed ^ (mixed >> 31)) >> 11) + 1) / (1 << 53))
        yield drawn
