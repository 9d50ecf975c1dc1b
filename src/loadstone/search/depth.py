"""Meters saturated throughput at several depths of the backlog."""

import math
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field

from loadstone.analysis.model import Cause, Trial
from loadstone.plan.load import BandLoad
from loadstone.search.model import Ask
from loadstone.search.pool import Estimate, Pool, estimate, saturated
from loadstone.search.ramp import USABLE, Knee
from loadstone.search.session import Session

# Arrivals while the band is filled and while it ebbs, over the capacity as estimated.
FILL = 2.0
LEAST_FILL = 1.2
EBB = 0.7
BAND_S = 0.4  # seconds of work between the marks of the band
BAND = 4  # requests between them, at least
SKIPPED = 4  # ticks in which the band is filled
MOST_WORK_S = 10.0  # in flight: more would not be answered before requests time out
USED = 8.0  # saturated seconds after which a deeper level counts
LEAST_GAP = 0.015
GAP_SIGMAS = 1.15  # in 95 % half-widths of both


@dataclass(frozen=True, slots=True)
class Level:
    """How much is kept in flight: the larger of the two."""

    knees: float
    work_s: float


LEVELS = (Level(1.6, 0.2), Level(4.0, 0.9), Level(12.0, 3.0), Level(30.0, 8.0))
SHALLOW, DEEP = 0, 1
DEEPEST = len(LEVELS) - 1


@dataclass(slots=True)
class Depths:
    """Saturated completions per level, and the depth from which they count."""

    knee: Knee
    rate_rps: float
    most_in_flight: float
    pools: list[Pool] = field(default_factory=lambda: [Pool()] * len(LEVELS))
    in_flight: list[list[float]] = field(default_factory=lambda: [[] for _ in LEVELS])
    by_time: list[Pool] = field(default_factory=list)
    top: int = DEEP  # > DEEP: throughput rises with depth, so only the deepest counts
    chunks: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def pool(self) -> Pool:
        """The stretches that say what the capacity is."""
        if self.top == DEEP:
            return self.pools[SHALLOW] + self.pools[DEEP]
        used = self.pools[self.top]
        return used if used.seconds >= USED else self.pools[self.top - 1]

    def gap(self, shallow: int, deep: int) -> float:
        """Give (deeper - shallower) throughput as a share, 0 where it is not significant."""
        left, right = estimate(self.pools[shallow]), estimate(self.pools[deep])
        if left is None or right is None:
            return 0.0
        share = (right.rate_rps - left.rate_rps) / self.rate_rps
        noise = math.hypot(left.half_width_rps, right.half_width_rps) / self.rate_rps
        return share if abs(share) > max(LEAST_GAP, GAP_SIGMAS * noise) else 0.0

    def meter(self, session: Session, seconds: float) -> Generator[Ask, Trial, Estimate | None]:
        """Hold one band for a while, shallow and deep in turn, and take what it shows."""
        level = self.top if self.top > DEEP else self.chunks % 2
        low, high = self._marks(level)
        slow_s = 1.5 * LEVELS[level].work_s if level > DEEP else 0.0  # a deep band fills slowly
        rate_rps = self.rate_rps
        # The mean rate is the capacity, whatever the two are; the ceiling bounds the filling too.
        fill_rps = min(FILL, max(LEAST_FILL, session.settings.ceiling_rps / rate_rps)) * rate_rps
        load = BandLoad(low, high, fill_rps, EBB * rate_rps, seconds + slow_s)
        trial = yield from session.ask(load, f"meter with {low} to {high} in flight")
        self._take(trial, level, 0.6 * low if level > DEEP else self.knee.in_flight)
        found = estimate(self.pool)
        if found is not None:
            self.rate_rps = found.rate_rps
        self._deepen()
        return found

    def _marks(self, level: int) -> tuple[int, int]:
        rate_rps, knee = self.rate_rps, self.knee.in_flight
        low = max(LEVELS[level].knees * knee, LEVELS[level].work_s * rate_rps)
        low = min(low, max(LEVELS[SHALLOW].knees * knee, MOST_WORK_S * rate_rps))
        high = low + max(BAND_S * rate_rps, BAND)
        if high > self.most_in_flight:
            high = self.most_in_flight
            low = max(1.1 * knee, min(low, high - max(0.75 * BAND_S * rate_rps, BAND)))
        return math.ceil(low), max(math.ceil(low) + 1, math.ceil(high))

    def _take(self, trial: Trial, level: int, least_in_flight: float) -> None:
        counts = trial.ticks
        self.chunks += 1
        is_good = trial.verdict.cause is not Cause.ERRORS
        pool = saturated(counts, least_in_flight, only_ok=not is_good)
        self.pools[level] += pool
        self.by_time.append(pool)
        if len(counts.in_flight) > SKIPPED:
            self.in_flight[level].append(float(counts.in_flight[SKIPPED:].mean()))
        if not is_good:
            self.errors.update(dict(trial.summary.errors))
            first = int((counts.failed > 0).argmax())
            held = USABLE * float(counts.in_flight[first])
            self.most_in_flight = min(self.most_in_flight, max(held, 1.5 * self.knee.in_flight))

    def _deepen(self) -> None:
        if self.chunks < 2 or self.top == DEEPEST:
            return
        below = SHALLOW if self.top == DEEP else self.top - 1
        wanted = 1.5 * LEVELS[self.top + 1].work_s * self.rate_rps
        if self.gap(below, self.top) > 0 and wanted < self.most_in_flight:
            self.top += 1
