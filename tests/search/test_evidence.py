"""No strategy states what one of its own trials contradicts, whatever the trials show."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_stats import stats_of

from loadstone.analysis.model import Cause, Ticks, Trial, TrialState, Verdict
from loadstone.engine.health import Health
from loadstone.search.evidence import NO_LOWER, RateOutcome, TrialEvidence
from loadstone.search.model import Capacity, TrialRequest
from loadstone.search.outage import lost_all, outage_s
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

HEALTH = Health(0.0, 0.0, 0.0, 0.0, 1.0, 0.0, threads=1)
VERDICTS = (
    (TrialState.SUSTAINED, None),
    (TrialState.SUSTAINED, None),
    (TrialState.DEGRADED, Cause.OVERLOAD),
    (TrialState.DEGRADED, Cause.ERRORS),
    (TrialState.DEGRADED, Cause.OBJECTIVE),
    (TrialState.DEGRADED, Cause.DRIFT),
    (TrialState.UNDECIDED, None),
    (TrialState.INVALID, Cause.GENERATOR),
    (TrialState.INVALID, Cause.CONNECTIONS),
)


class Chance:
    """Answers every request for a trial at random."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._wild = float(self._random.uniform())  # how often a trial is none of the usual

    def measure(self, ask: TrialRequest) -> Trial:
        random = self._random
        rate_rps = ask.spec(1).rate_rps
        seconds = min(ask.load.duration_s or 5.0, 30.0)
        count = max(1, int(seconds * 2))
        level = float(random.uniform(5, 100))
        ok = random.poisson(level / 2, count)
        is_odd = random.uniform() < self._wild
        failed = random.poisson(2.0, count) if is_odd and random.uniform() < 0.3 else 0 * ok
        state, cause = VERDICTS[int(random.integers(len(VERDICTS)))] if is_odd else VERDICTS[0]
        if rate_rps is None and state in (TrialState.SUSTAINED, TrialState.DEGRADED):
            state, cause = TrialState.UNDECIDED, None
        each_s = float(random.uniform(0.001, 0.5))
        errors = (("503 Service Unavailable", int(failed.sum())),) if failed.any() else ()
        stats = stats_of(
            seconds + float(random.uniform(0.5, 3.0)),
            int(ok.sum()),
            each_s,
            errors,
            throughput_rps=float(ok.sum() / (count / 2)),
            latency_slope=float(random.normal(0, 0.02)),
        )
        ticks = Ticks(ok + failed, ok, failed, random.integers(0, 300, count))
        verdict = Verdict(state, ("by chance",), cause)
        return Trial(1, rate_rps, ask.purpose, seconds, stats, ticks, verdict, HEALTH)


def assert_agrees(found: Capacity, trials: tuple[Trial, ...]) -> None:
    changed = any("capacity changed" in word for word in found.words)
    if changed:  # earlier trials were of another service
        return
    # What was measured again because the service was gone shows nothing of its capacity.
    constant = [t for t in trials if t.rate_rps and not outage_s(t) and t.stats.ok]
    if any("was it restarted?" in word for word in found.words):
        constant = [t for t in constant if not lost_all(t)]
    held = [t.rate_rps or 0 for t in constant if t.verdict.state is TrialState.SUSTAINED]
    failed = [t.rate_rps or 0 for t in constant if t.verdict.state is TrialState.DEGRADED]
    low, high = found.low_rps, found.high_rps
    if high is not None:
        assert high >= max(held, default=0.0) * (1 - 1e-9)
    if low is not None and high is None:
        assert low < min(failed, default=np.inf)
    if low is not None and high is not None:
        assert low <= high
        if found.rate_rps is not None:
            assert low <= found.rate_rps <= high
    for word in found.words:
        if match := re.match(r"no more than ([\d.e+]+)/s", word):
            assert float(match[1]) >= max(held, default=0.0) * 0.999
        if match := re.match(r"at least ([\d.e+]+)/s", word):
            assert float(match[1]) <= min(failed, default=np.inf) * 1.001


@pytest.mark.parametrize("method", STRATEGIES)
@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_no_statement_stands_against_a_trial(method: str, seed: int) -> None:
    if method == "mlrsearch" and seed % 8:
        return  # it has a thread of its own
    wanted = SearchSettings(budget_s=1000.0 if "isp" in method else 150.0, ceiling_rps=90.0)
    found, trials = search(STRATEGIES[method](wanted), Chance(seed).measure)
    assert_agrees(found, trials)


def test_the_meter_of_a_rate_limiter_is_no_upper_bound_where_a_higher_rate_was_sustained() -> None:
    evidence = TrialEvidence([RateOutcome(53.0, True), RateOutcome(55.0, True)])
    found = evidence.agreed(Capacity(None, None, 49.33, 0.0, ("no more than 49.33/s: none held",)))
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, 55.0, None)
    assert found.words == ("at least 55/s, which was sustained",)


def test_a_lower_rate_that_was_tried_is_not_denied() -> None:
    evidence = TrialEvidence([RateOutcome(23.4, True), RateOutcome(32.1, False)])
    words = ("no more than 52.6/s: none held", "refuses at 52.6/s", NO_LOWER)
    found = evidence.agreed(Capacity(None, None, 52.6, 0.0, words))
    assert (found.low_rps, found.high_rps) == (23.4, 32.1)
    assert NO_LOWER not in found.words


def test_at_least_is_only_said_below_what_failed() -> None:
    evidence = TrialEvidence([RateOutcome(50.0, True), RateOutcome(60.0, False)])
    found = evidence.agreed(Capacity(100.0, 100.0, None, 0.95, ("at least 100/s, the ceiling",)))
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, 50.0, 60.0)
    assert found.words == ("between 50/s, which was sustained, and 60/s",)


def test_what_agrees_is_left_as_it_is() -> None:
    evidence = TrialEvidence([RateOutcome(49.0, True), RateOutcome(51.0, False)])
    found = Capacity(50.0, 49.5, 50.5, 0.95)
    assert evidence.agreed(found) == replace(found)


@pytest.mark.parametrize(
    "stated",
    [
        Capacity(None, None, 80.0, 0.0, ("no more than 80/s: none held",)),
        Capacity(95.0, 95.0, None, 0.95, ("at least 95/s, the ceiling",)),
    ],
)
def test_a_rate_that_held_above_one_that_failed_is_no_upper_bound(stated: Capacity) -> None:
    evidence = TrialEvidence([RateOutcome(90.0, False), RateOutcome(100.0, True)])
    found = evidence.agreed(stated)
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, None, None)
    assert found.words == ("90/s failed in one trial and 100/s held in another",)


def test_a_rate_that_failed_above_all_that_held_is_an_upper_bound() -> None:
    shown = [RateOutcome(80.0, True), RateOutcome(90.0, False), RateOutcome(100.0, True)]
    evidence = TrialEvidence([*shown, RateOutcome(110.0, False)])
    found = evidence.agreed(Capacity(95.0, 95.0, None, 0.95, ("at least 95/s, the ceiling",)))
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, 80.0, 110.0)
    assert found.words[0] == "between 80/s, which was sustained, and 110/s"
