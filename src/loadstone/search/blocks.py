"""Seconds in which a service was full, from all trials of a search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState
from loadstone.search.pool import full_runs

BLOCK_S = 1.0
FULL = 1.1  # of the number in flight that keeps every worker busy (Little's law)
# Of the beginning of a trial, in which the service fills and first responses come in groups.
SKIPPED_S = 1.0
SKIPPED = 2.0  # unloaded response times
METERED = "meter with"  # how the purpose of a band begins
LEAST_QUEUE_S = 0.3  # of work: a shorter one drains within a tick of the clock
LEAST_DRAINS = 2
# Seconds over those of one queue. Of 480 simulated services with one queue, 2 were later (requests
# with heavy tails); of uneven servers that take turns, nine of ten.
LATE = 1.4
DISPERSION = 0.1  # of completions, at least: a few blocks may agree by chance


@dataclass(frozen=True, slots=True)
class Block:
    """A second in which the service was full."""

    trial: int
    at_s: float  # of the search's load
    into_s: float  # of its trial
    requests: float  # completed in the search before
    in_flight: float  # when it begins: in a second in which the service pauses, more come in
    rate_rps: float


def blocks(trials: Sequence[Trial], since_s: float = 0.0) -> tuple[Block, ...]:
    """Return the blocks in which the service was full, after so many seconds of load."""
    least, skip = _full(trials)
    found: list[Block] = []
    begin_s = requests = 0.0
    for trial in trials:
        # A constant rate that the service keeps up with is what completes, not its capacity. Where
        # the load generator was the limit, what it did not read seems to be in flight.
        is_full = trial.rate_rps is None or trial.verdict.cause in (Cause.OVERLOAD, Cause.DRIFT)
        if is_full and trial.verdict.state is not TrialState.INVALID:
            of_trial = _of_trial(trial, least, skip, begin_s, requests)
            found += [one for one in of_trial if one.at_s >= since_s]
        begin_s += trial.spent_s
        requests += trial.stats.ended
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Drain:
    """How a queue drained after the end of a load."""

    in_flight: int  # when the load ended
    seconds: float  # until the last answer
    due_s: float  # that so many take at the rate of the full service


def are_late(found: Sequence[Drain]) -> bool:
    """Whether answers came later, after several loads, than if all workers shared one queue.

    A single slow request does not explain it: without the latest drain they are late, too.
    """
    if len(found) < LEAST_DRAINS:
        return False
    others = sorted(found, key=lambda one: one.seconds / one.due_s)[:-1]
    return _lateness(found) > LATE and _lateness(others) > 1


def _lateness(found: Sequence[Drain]) -> float:
    return sum(one.seconds for one in found) / sum(one.due_s for one in found)


def drains(trials: Sequence[Trial], rate_rps: float) -> list[Drain]:
    """Return how the queues of trials drained that ended with one, at this rate when full."""
    response_s = _response_s(trials)
    found = []
    for trial in trials:
        is_queueing = trial.purpose.startswith(METERED) or trial.verdict.cause is Cause.OVERLOAD
        ticks = trial.timeline
        is_valid = trial.verdict.state is not TrialState.INVALID
        if not is_queueing or not is_valid or not len(ticks.ok) or trial.stats.failed:
            continue
        in_flight = int(ticks.in_flight[-1])
        own_s = SKIPPED * response_s + TICK_S / 2  # of the last request, and of the clock's ticks
        seconds = trial.stats.load_s - len(ticks.ok) * TICK_S - own_s
        if rate_rps > 0 and in_flight >= LEAST_QUEUE_S * rate_rps:
            found.append(Drain(in_flight, seconds, in_flight / rate_rps))
    return found


def dispersion(found: Sequence[Block]) -> float:
    """Return variance over mean of completions, from neighbouring seconds (Allan variance)."""
    mean_rps = float(np.mean([block.rate_rps for block in found]))
    pairs = [
        (left.rate_rps - right.rate_rps) ** 2 / 2
        for left, right in pairwise(found)
        if left.trial == right.trial
    ]
    variance = float(np.mean(pairs)) if pairs else 0.0
    return max(DISPERSION, variance * BLOCK_S / mean_rps) if mean_rps else DISPERSION


def _full(trials: Sequence[Trial]) -> tuple[float, int]:
    """Return the number in flight that fills the service, and the ticks until a trial has it."""
    response_s = _response_s(trials)
    most_rps = max((trial.stats.throughput_rps for trial in trials), default=0.0)
    skip = math.ceil((SKIPPED_S + SKIPPED * response_s) / TICK_S)
    return max(2.0, FULL * most_rps * response_s), skip


def _response_s(trials: Sequence[Trial]) -> float:
    """Return the unloaded response time."""
    return min((trial.stats.service.median_s for trial in trials if trial.stats.ok), default=0.0)


def _of_trial(
    trial: Trial, least: float, skip: int, begin_s: float, requests: float
) -> list[Block]:
    counts = trial.timeline
    # Refused requests were not served.
    ended = counts.ok if trial.verdict.cause is Cause.ERRORS else counts.ok + counts.failed
    before = requests + np.concatenate([[0], np.cumsum(ended)])
    width = round(BLOCK_S / TICK_S)
    return [
        Block(
            trial.number,
            begin_s + at * TICK_S,
            at * TICK_S,
            float(before[at]),
            float(counts.in_flight[at - 1]),
            float(ended[at : at + width].sum()) / BLOCK_S,
        )
        for begin, end in full_runs(counts, least, skip)
        for at in range(begin, end - width + 1, width)
    ]
