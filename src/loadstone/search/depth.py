"""Measures saturated throughput at several depths of the backlog."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from loadstone.analysis.model import TICK_S, Cause, Trial
from loadstone.plan.load import BandLoad
from loadstone.search.blocks import METERED
from loadstone.search.change import Cut, LevelChange, change, fall
from loadstone.search.model import Part
from loadstone.search.pool import Pool, ThroughputEstimate, estimate, overloaded, saturated
from loadstone.search.ramp import USABLE, Knee
from loadstone.search.refusal import is_refusal
from loadstone.search.rest import emptied
from loadstone.search.session import Session

# Arrival rates while the band fills and drains, over the estimated capacity.
FILL = 2.0
EBB = 0.7
BAND_S = 0.4  # seconds of work between the marks of the band
BAND = 4  # requests between them, at least
SKIPPED = 4  # ticks in which the band fills
MOST_WORK_S = 10.0  # in flight: with more, requests would time out
USED = 8.0  # saturated seconds after which a deeper level counts
LEAST_GAP = 0.015
MOST_REFUSED = 3  # consecutive chunks that end in errors
REFUSED_SHARE = 0.02
ACCEPTED_S = 5.0  # several times from the lower mark of a band to the upper one
GAP_SIGMAS = 1.15  # in 95 % half-widths of both


@dataclass(frozen=True, slots=True)
class Depth:
    """Number in flight: the larger of `knees` times the knee and `work_s` seconds of work."""

    knees: float
    work_s: float


LEVELS = (Depth(1.6, 0.2), Depth(4.0, 0.9), Depth(12.0, 3.0), Depth(30.0, 8.0))
SHALLOW, DEEP = 0, 1
DEEPEST = len(LEVELS) - 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """Result of one band."""

    level: int
    pool: Pool
    begin_s: float  # of the search's load
    in_flight: float | None = None  # mean
    # False: only used to detect changes, not to estimate the rate. In a failed trial below N, noise
    # was worse than usual.
    is_counted: bool = True


class LevelChanged(Exception):
    """The service's capacity has changed lastingly."""


class RequestsRefused(Exception):
    """Requests are refused, so the meter cannot work; carries the trial."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial


@dataclass(slots=True)
class Depths:
    """Saturated completions by level of depth, and the levels that count."""

    knee: Knee
    rate_rps: float
    most_in_flight: float
    chunks: list[Chunk] = field(default_factory=list)  # since the last change
    steps: list[LevelChange] = field(default_factory=list)  # changes of the service, in order
    bucket: LevelChange | None = None  # when a limiter's bucket became empty, which is no change
    top: int = DEEP  # > DEEP: throughput rises with depth, so only the deepest level counts
    begins: int = SHALLOW  # with this level
    count: int = 0
    refused: int = 0  # consecutive refused chunks
    most_accepted: int = 0  # in flight for ACCEPTED_S without a refusal
    errors: Counter[str] = field(default_factory=Counter)

    def pool_of(self, level: int) -> Pool:
        """Return the saturated periods of one level."""
        counted = (one.pool for one in self.chunks if one.level == level and one.is_counted)
        return sum(counted, Pool())

    @property
    def pool(self) -> Pool:
        """The saturated periods from which capacity is estimated."""
        if self.top == DEEP:
            return self.pool_of(SHALLOW) + self.pool_of(DEEP)
        used = self.pool_of(self.top)
        return used if used.seconds >= USED else self.pool_of(self.top - 1)

    def points(self) -> list[tuple[float, float]]:
        """Return the mean number in flight and the throughput of each level that was metered."""
        found = []
        for level in range(len(LEVELS)):
            seen = [one.in_flight for one in self.chunks if one.level == level and one.in_flight]
            if seen and (at := estimate(self.pool_of(level))):
                found.append((sum(seen) / len(seen), at.rate_rps))
        return found

    def gap(self, shallow: int, deep: int) -> float:
        """Return (deeper - shallower) throughput as a share; 0 if it is not significant."""
        left, right = estimate(self.pool_of(shallow)), estimate(self.pool_of(deep))
        if left is None or right is None:
            return 0.0
        share = (right.rate_rps - left.rate_rps) / self.rate_rps
        noise = math.hypot(left.half_width_rps, right.half_width_rps) / self.rate_rps
        return share if abs(share) > max(LEAST_GAP, GAP_SIGMAS * noise) else 0.0

    def meter(self, session: Session, seconds: float) -> Part[ThroughputEstimate | None]:
        """Run one band, shallow and deep in turn, and add its completions."""
        level = self.top if self.top > DEEP else (self.count + self.begins) % 2
        low, high = self._marks(level)
        if level > DEEP:
            session.raise_connections(high)
        slow_s = 1.5 * LEVELS[level].work_s if level > DEEP else 0.0  # a deep band fills slowly
        rate_rps = self.rate_rps
        # The mean rate is the capacity, whatever the two rates; the ceiling also limits filling.
        fill_rps = min(FILL * rate_rps, session.settings.ceiling_rps)
        load = BandLoad(low, high, fill_rps, min(EBB * rate_rps, fill_rps), seconds + slow_s)
        trial = yield from session.run_trial(load, f"{METERED} {low} to {high} in flight")
        begin_s = session.spent_s - trial.spent_s  # of the last attempt
        least = 0.6 * low if level > DEEP else self.knee.in_flight
        self._take(trial, level, least, begin_s, session.settle_s)
        self._require_accepted(trial, high)
        self.require_level()
        found = estimate(self.pool)
        if found is not None:
            self.rate_rps = found.rate_rps
        self._deepen()
        return found

    def _require_accepted(self, trial: Trial, high: int) -> None:
        """Raise RequestsRefused if a band cannot be kept because requests are refused."""
        is_bad = trial.verdict.cause is Cause.ERRORS
        self.refused = self.refused + 1 if is_bad else 0
        refuses = trial.stats.failed > REFUSED_SHARE * trial.stats.due
        if is_bad and refuses:
            # A full queue does not refuse what it held before; a limiter's empty bucket does.
            is_limiter = high <= self.most_accepted or is_refusal(trial, self.knee.response_s)
            if self.refused >= MOST_REFUSED or is_limiter:
                raise RequestsRefused(trial)
        failed = np.flatnonzero(trial.timeline.failed)
        ticks = int(failed[0]) if len(failed) else len(trial.timeline.ok)
        if ticks * TICK_S >= ACCEPTED_S:
            self.most_accepted = max(self.most_accepted, high)

    def add(
        self, trial: Trial, begin_s: float, settle_s: float, *, is_counted: bool = True
    ) -> None:
        """Add the saturated part of an overloaded constant-rate trial."""
        pool = overloaded(trial.timeline, self.knee.in_flight, settle_s)
        if self.bucket is not None:
            pool = emptied(pool, self.bucket)
        # The trial is saturated towards its end.
        begin_s += len(trial.timeline.ok) * TICK_S - pool.seconds
        self.chunks.append(Chunk(SHALLOW, pool, begin_s, is_counted=is_counted))
        self.require_level()

    def fell(self) -> LevelChange | None:
        """Return the drop from the ramp's throughput to the metered one; None: there is none."""
        if self.steps or self.bucket or self.top > DEEP or self.gap(SHALLOW, DEEP) != 0:
            return None
        seen = sum((chunk.pool for chunk in self.chunks), Pool())
        if not fall(self.knee.throughput_rps, self.knee.completed, seen):
            return None
        rate_rps = seen.count / seen.seconds
        return LevelChange(
            self.knee.throughput_rps, rate_rps, self.knee.at_s, self.chunks[0].begin_s
        )

    def recent(self) -> Cut | None:
        """Return a change of the rate in the last seconds, by a noise burst or by the service."""
        if self.top > DEEP:
            return None
        return change([(one.level, one.pool) for one in self.chunks], must_last=False)

    def require_level(self) -> None:
        """Raise LevelChanged if the service has changed, after dropping earlier chunks."""
        if self.top > DEEP:
            return
        earlier = [step.before_rps for step in self.steps]
        found = change([(one.level, one.pool) for one in self.chunks], earlier)
        if found is None:
            return
        last_s = next(begin + at for begin, at, length in self._at(found.last_s) if at <= length)
        first_s = next(begin + at for begin, at, length in self._at(found.first_s) if at < length)
        self.steps.append(LevelChange(found.before_rps, found.after_rps, last_s, first_s))
        # An empty bucket cannot make the service faster, so the earlier step was a change, too.
        if self.bucket is not None and found.after_rps > found.before_rps:
            self.steps.insert(0, self.bucket)
            self.bucket = None
        self.chunks = _later(self.chunks, found.first_s)
        self.rate_rps = found.after_rps
        raise LevelChanged

    def _at(self, seconds: float) -> Iterator[tuple[float, float, float]]:
        """Yield each chunk's begin, the end of `seconds` saturated seconds in it, its length."""
        for chunk in self.chunks:
            yield chunk.begin_s, seconds, chunk.pool.seconds
            seconds -= chunk.pool.seconds

    def _marks(self, level: int) -> tuple[int, int]:
        rate_rps, knee = self.rate_rps, self.knee.in_flight
        low = max(LEVELS[level].knees * knee, LEVELS[level].work_s * rate_rps)
        low = min(low, max(LEVELS[SHALLOW].knees * knee, MOST_WORK_S * rate_rps))
        high = low + max(BAND_S * rate_rps, BAND)
        if high > self.most_in_flight:
            high = self.most_in_flight
            low = max(1.1 * knee, min(low, high - max(0.75 * BAND_S * rate_rps, BAND)))
        return math.ceil(low), max(math.ceil(low) + 1, math.ceil(high))

    def _take(
        self, trial: Trial, level: int, least_in_flight: float, begin_s: float, settle_s: float
    ) -> None:
        counts = trial.timeline
        self.count += 1
        is_good = trial.verdict.cause is not Cause.ERRORS
        pool = saturated(counts, least_in_flight, settle_s, only_ok=not is_good)
        if self.bucket is not None:
            pool = emptied(pool, self.bucket)
        mean = None
        if len(counts.in_flight) > SKIPPED:
            mean = float(counts.in_flight[SKIPPED:].mean())
        self.chunks.append(Chunk(level, pool, begin_s, mean))
        if not is_good:
            self.errors.update(dict(trial.stats.errors))
            first = int((counts.failed > 0).argmax())
            held = USABLE * float(counts.in_flight[first])
            self.most_in_flight = min(self.most_in_flight, max(held, 1.5 * self.knee.in_flight))

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the deep band completed more, which may be depth or a change of the service.

        A shallow band afterwards decides: it completes less again if it is depth.
        """
        levels = [one.level for one in self.chunks if one.is_counted]
        is_shallow_again = DEEP in levels and SHALLOW in levels[levels.index(DEEP) :]
        return self.top == DEEP and self.gap(SHALLOW, DEEP) > 0 and not is_shallow_again

    def _deepen(self) -> None:
        if self.count < 2 or self.top == DEEPEST or self.is_unconfirmed:
            return
        below = SHALLOW if self.top == DEEP else self.top - 1
        wanted = 1.5 * LEVELS[self.top + 1].work_s * self.rate_rps
        if self.gap(below, self.top) > 0 and wanted < self.most_in_flight:
            self.top += 1


def _later(chunks: list[Chunk], cut_s: float) -> list[Chunk]:
    """Return the chunks after `cut_s` saturated seconds."""
    kept = []
    for chunk in chunks:
        seconds = chunk.pool.seconds
        if cut_s <= 0:
            kept.append(chunk)
        elif cut_s < seconds:
            kept.append(replace(chunk, pool=chunk.pool.after(cut_s), in_flight=None))
        cut_s -= seconds
    return kept
