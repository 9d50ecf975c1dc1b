"""The binary search of ISP RAS 2015: whole numbers of requests per second, 360 s each.

"A performance testing and stress testing of cloud platform central identity: OpenStack Keystone
case study", Proceedings of ISP RAS 27(5). A rate is degraded on any error, or when the slope a of
y = ax + b (response time over start time) is at least 0.01. The paper gives no unit; its printed
run at N + 1 = 38/s has a slope of 0.0049 s per s, so it would pass in s per s and fails in the
others. Its text says 360 s, of which 60 s are dropped; its printed runs lasted 120 s.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from loadstone.analysis.model import Trial
from loadstone.plan.load import OpenLoad
from loadstone.search.guard import guarded
from loadstone.search.model import Ask, Capacity, Strategy
from loadstone.search.session import Session
from loadstone.search.settings import Settings

Unit = Literal["s/s", "s/min", "ms/s"]
THRESHOLD = 0.01
# Slope in s per s that is 0.01 of the unit.
LIMIT: dict[Unit, float] = {"s/s": THRESHOLD, "s/min": THRESHOLD / 60, "ms/s": THRESHOLD / 1000}
# Share of simulated services whose capacity lies within [N, N + 1] (docs/methodology.md).
MEASURED_CONFIDENCE: dict[Unit, float] = {"s/s": 0.43, "s/min": 0.38, "ms/s": 0.17}
HIGHEST_RPS = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """How the paper is read where it leaves a choice."""

    unit: Unit = "s/s"
    trial_s: float = 360.0
    confirms: bool = True  # runs N - 1 and N + 1 again


def isp_ras_2015(settings: Settings, reading: Reading) -> Strategy:
    """Search as the paper did, whatever time it takes."""
    session = Session(settings)
    return guarded(session, _search(session, reading))


def _search(session: Session, reading: Reading) -> Strategy:
    good, bad = 0, int(min(HIGHEST_RPS, session.settings.ceiling_rps))
    slopes: dict[int, str] = {}
    while bad - good > 1:
        rate = (good + bad) // 2
        trial = yield from _measure(session, reading, rate)
        slopes[rate] = f"{rate}/s: slope {trial.summary.latency_slope:.2g} s per s"
        if _is_degraded(trial, reading):
            bad = rate
        else:
            good = rate
    words = tuple(slopes[rate] for rate in (good, bad) if rate in slopes)
    if reading.confirms:
        words += yield from _confirm(session, reading, good)
    words += (f"read as 0.01 {reading.unit}; the paper gives no unit",)
    confidence = MEASURED_CONFIDENCE[reading.unit]
    if good == 0:
        return Capacity(None, None, 1.0, 0.0, ("no more than 1/s", *words))
    return Capacity(float(good), float(good), float(good + 1), confidence, words)


def _measure(session: Session, reading: Reading, rate: int) -> Generator[Ask, Trial, Trial]:
    load = OpenLoad(float(rate), reading.trial_s)
    return (yield from session.ask(load, "binary search of ISP RAS 2015"))


def _confirm(
    session: Session, reading: Reading, found: int
) -> Generator[Ask, Trial, tuple[str, ...]]:
    words: tuple[str, ...] = ()
    for rate, should_be_degraded in ((found - 1, False), (found + 1, True)):
        if rate < 1:
            continue
        trial = yield from _measure(session, reading, rate)
        if _is_degraded(trial, reading) is not should_be_degraded:
            said = "degraded" if not should_be_degraded else "not degraded"
            words += (f"its own confirmation contradicts it: {rate}/s was {said}",)
    return words


def _is_degraded(trial: Trial, reading: Reading) -> bool:
    summary = trial.summary

    return summary.failed > 0 or summary.latency_slope >= LIMIT[reading.unit]
