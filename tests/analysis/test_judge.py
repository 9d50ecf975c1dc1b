import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_stats import stats_of

from loadstone.analysis.alarm import Alarm, chance_of, replay
from loadstone.analysis.goal import Goal, Objective, goal
from loadstone.analysis.judge import TrialSpec, judge
from loadstone.analysis.model import TICK_S, Cause, Stats, Ticks, TrialState, Verdict
from loadstone.engine.health import Health
from loadstone.engine.progress import Progress
from loadstone.errors import InvalidInput

HEALTHY = Health(0.1, 0.5, 1.0, 0.1, 10.0, 0.0, 1)
RATE = 50.0
DEFAULT = Goal()


def counts(backlog_s: np.ndarray, failed: int = 0, rate: float = RATE) -> Ticks:
    """A trial at `rate` whose backlog, in seconds of work, is given per tick."""
    in_flight = np.round(backlog_s * rate).astype(np.int64)
    due = np.full(len(in_flight), int(rate * TICK_S), dtype=np.int64)
    errors = np.zeros(len(in_flight), dtype=np.int64)
    errors[-1] = failed
    ok = due - np.diff(in_flight, prepend=0) - errors
    return Ticks(due=due, ok=ok, failed=errors, in_flight=in_flight)


def stats(ticks: Ticks, p99_s: float = 0.3) -> Stats:
    times_s = (0.05, 0.1, 0.2, 0.25, p99_s, 0.5, 0.1)
    failed = int(ticks.failed.sum())
    errors = (("503 Service Unavailable", failed),) if failed else ()
    seconds = len(ticks.due) * TICK_S
    ok = int(ticks.ok.sum())
    cut_off = int(ticks.due.sum()) - ok - failed
    return stats_of(seconds, ok, times_s, errors, cut_off=cut_off)


def verdict(
    ticks: Ticks, planned_s: float | None = None, p99_s: float = 0.3, *, goal: Goal = DEFAULT
) -> Verdict:
    seconds = len(ticks.due) * TICK_S
    offer = TrialSpec(1, "test", RATE, planned_s or seconds, alarm_s=1.0, rise_s=0.5)
    return judge(offer, stats(ticks, p99_s), ticks, HEALTHY, goal)


def level(seconds: float, at_s: float = 0.2) -> np.ndarray:
    return np.full(int(seconds / TICK_S), at_s)


def slope(seconds: float, growth: float, start_s: float = 0.2) -> np.ndarray:
    return start_s + growth * TICK_S * np.arange(1, int(seconds / TICK_S) + 1)


def test_a_steady_backlog_is_sustained() -> None:
    assert verdict(counts(level(30))).state is TrialState.SUSTAINED


def test_a_backlog_that_grows_from_the_start_is_overload_and_says_by_how_much() -> None:
    found = verdict(counts(slope(14, 0.15)))
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.OVERLOAD)
    assert "backlog grew by 1.9 s of work in 14 s" in found.reasons[0]
    assert "50/s offered" in found.reasons[0]


def test_growth_too_slow_for_the_alarm_is_found_at_the_end() -> None:
    found = verdict(counts(slope(60, 0.015)))
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.OVERLOAD)


def test_a_service_that_becomes_slower_drifts() -> None:
    found = verdict(counts(np.concatenate([level(30), slope(20, 0.08)])))
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.DRIFT)
    assert "stood still for 30 s, then grew by 1.6 s of work in 20 s" in found.reasons[0]


def test_a_burst_that_drains_again_is_sustained_and_mentioned() -> None:
    hill = np.concatenate([level(10), level(5, 0.9), level(25)])
    quiet = TrialSpec(1, "test", RATE, 40.0, alarm_s=2.0, rise_s=0.3)
    ticks = counts(hill)
    found = judge(quiet, stats(ticks), ticks, HEALTHY, Goal())
    hill[20:30] = 1.1
    ticks = counts(hill)
    found = judge(quiet, stats(ticks), ticks, HEALTHY, Goal())
    assert found.state is TrialState.SUSTAINED
    assert "burst of noise" in found.reasons[1]


def test_a_backlog_that_drained_and_ends_as_high_again_is_not_steady() -> None:
    rise, fall = slope(12, 0.22, 0.5), slope(16, -0.09, 3.1)
    hill = np.concatenate([rise, fall, slope(6, 0.35, 1.7)])
    spec = TrialSpec(1, "test", RATE, 34.0, alarm_s=5.0, rise_s=1.3)
    ticks = counts(hill)
    found = judge(spec, stats(ticks), ticks, HEALTHY, Goal())
    assert found.state is TrialState.UNDECIDED
    assert "above its least: not steady" in found.reasons[0]
    ticks = counts(np.concatenate([rise, fall, level(6, 1.7)]))  # no second rise: noise
    found = judge(spec, stats(ticks), ticks, HEALTHY, Goal())
    assert found.state is TrialState.SUSTAINED


def test_errors_beyond_the_allowed_share_degrade() -> None:
    found = verdict(counts(level(30), failed=30))
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.ERRORS)
    assert found.reasons[0].startswith("30 of 1500 failed (2.00 %, allowed 0.10 %)")


def test_a_small_share_that_is_allowed_is_not_printed_as_zero() -> None:
    found = verdict(counts(level(30), failed=30), goal=Goal(error_share=0.00001))
    assert found.reasons[0].startswith("30 of 1500 failed (2.00 %, allowed 0.001 %)")


@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_a_trial_without_any_success_is_no_overload(seconds: float) -> None:
    due = np.full(int(seconds / TICK_S), int(RATE * TICK_S))
    ticks = Ticks(due=due, ok=0 * due, failed=due, in_flight=0 * due)
    spec = TrialSpec(1, "test", RATE, 60.0, alarm_s=1.0, rise_s=0.5, alarmed=Cause.ERRORS)
    found = judge(spec, stats(ticks), ticks, HEALTHY, Goal())
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.ERRORS)


def test_one_error_that_the_allowed_share_explains_does_not_degrade() -> None:
    assert verdict(counts(level(30), failed=1)).state is TrialState.SUSTAINED


def test_no_error_is_allowed_when_none_is() -> None:
    found = verdict(counts(level(30), failed=1), goal=Goal(error_share=0.0))
    assert found.cause is Cause.ERRORS


def test_a_missed_objective_is_told_from_overload() -> None:
    wanted = Goal(objectives=(Objective("p99", 0.2),))
    found = verdict(counts(level(30)), goal=wanted)
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.OBJECTIVE)
    assert found.reasons == ("p99 was 300 ms, wanted p99<200ms",)


@pytest.mark.parametrize(("limit_s", "is_missed"), [(0.299, True), (0.3, True), (0.301, False)])
def test_an_objective_holds_just_below_its_limit(limit_s: float, is_missed: bool) -> None:
    wanted = Goal(objectives=(Objective("p99", limit_s),))
    found = verdict(counts(level(30)), goal=wanted)
    assert (found.cause is Cause.OBJECTIVE) is is_missed
    assert (found.state is TrialState.SUSTAINED) is not is_missed


def test_an_objective_is_missed_when_nothing_ended_well() -> None:
    wanted = Goal(objectives=(Objective("p99", 0.2),))
    assert verdict(counts(level(30)), p99_s=math.nan, goal=wanted).cause is Cause.OBJECTIVE


def test_a_trial_whose_generator_was_the_limit_is_invalid_whatever_it_shows() -> None:
    ticks = counts(slope(14, 0.15))
    late = Health(5.0, 80.0, 200.0, 9.0, 10.0, 4.0, 1, limits=("sends were late",))
    found = judge(TrialSpec(1, "", RATE, 14.0), stats(ticks), ticks, late, Goal())
    assert found == Verdict(TrialState.INVALID, ("sends were late",), Cause.GENERATOR)


def test_a_trial_that_was_cut_short_decides_nothing() -> None:
    assert verdict(counts(level(5)), planned_s=30.0).state is TrialState.UNDECIDED


def test_a_rise_just_below_growth_decides_nothing() -> None:
    assert verdict(counts(slope(30, 0.021))).state is TrialState.UNDECIDED


def test_a_short_trial_that_completes_clearly_less_than_is_offered_is_not_sustained() -> None:
    # 0.35 s of growth in 3.5 s: under the limit of 0.5 s, and a tenth of the load is missing.
    found = verdict(counts(slope(5, 0.12)))
    assert found.state is TrialState.UNDECIDED
    assert "43.57/s of the offered 50/s were completed in 5.0 s" in found.reasons[0]


def test_answers_on_their_way_at_the_end_are_no_shortfall_and_are_named() -> None:
    # 0.5 s of work is always on its way: 90 % of the answers come within the 5 s.
    found = verdict(counts(level(5, 0.5)))
    assert found.state is TrialState.SUSTAINED
    assert "25 of 250 answers came after the load's end" in found.reasons[0]


@given(st.floats(0.0, 0.6), st.floats(3.0, 60.0))
def test_no_sustained_trial_completes_clearly_less_than_is_offered(growth, seconds) -> None:
    found = verdict(counts(slope(seconds, growth)))
    if found.state is TrialState.SUSTAINED:
        assert growth < 0.13  # a tenth, and the rounding to whole requests and ticks


def test_without_a_constant_rate_there_is_nothing_to_sustain() -> None:
    ticks = counts(level(10))
    offer = TrialSpec(1, "ramp", None, 10.0)
    found = judge(offer, stats(ticks), ticks, HEALTHY, Goal())
    assert found.state is TrialState.UNDECIDED


def test_the_alarm_comes_within_seconds_of_a_hopeless_trial() -> None:
    alarm = replay(Alarm(RATE, 0.5), counts(slope(60, 0.2)))
    assert alarm.cause is Cause.OVERLOAD
    assert alarm.at_s is not None
    assert alarm.at_s < 6


def test_the_alarm_never_hangs_on_fewer_than_six_requests() -> None:
    ticks = counts(np.concatenate([level(4, 0.0), level(10, 2.5)]), rate=2.0)
    assert replay(Alarm(2.0, 0.1), ticks).cause is None


def test_the_alarm_wants_the_height_held_for_a_tick() -> None:
    alarm = Alarm(RATE, 0.5)
    for elapsed_s, in_flight in ((1.0, 5), (1.9, 5), (2.1, 60), (2.3, 5), (2.5, 60), (2.9, 60)):
        due = int(elapsed_s * RATE)
        assert alarm(Progress(elapsed_s, due, due, due - in_flight, 0, 0.0))
    assert not alarm(Progress(3.0, 150, 150, 80, 0, 0.0))


def test_a_target_that_answers_errors_only_is_stopped_after_a_few() -> None:
    alarm = Alarm(RATE, None, error_share=0.001)
    assert alarm(Progress(0.1, 4, 4, 0, 4, 0.0))
    assert not alarm(Progress(0.2, 8, 8, 0, 8, 0.0))
    assert alarm.cause is Cause.ERRORS


def test_errors_that_are_allowed_stop_nothing() -> None:
    alarm = Alarm(RATE, None, error_share=0.05)
    assert alarm(Progress(20.0, 1000, 1000, 950, 50, 0.0))


@pytest.mark.parametrize(
    ("count", "expected", "chance"),
    [(1, 1.0, 1.0), (3, 1.0, 0.0803), (5, 0.5, 1.72e-4), (0, 0.0, 1.0), (2, 0.0, 0.0)],
)
def test_chance_of_too_many_events(count: int, expected: float, chance: float) -> None:
    assert chance_of(count, expected) == pytest.approx(chance, rel=1e-2)


@given(st.integers(0, 10_000), st.floats(0, 10_000))
def test_a_chance_is_one(count: int, expected: float) -> None:
    assert 0.0 <= chance_of(count, expected) <= 1.0


def test_objectives_are_read() -> None:
    read = goal(("p99<500ms", "mean < 0.3 s", "errors<0.1%"))
    assert read == Goal(0.001, (Objective("p99", 0.5), Objective("mean", 0.3)))


@pytest.mark.parametrize("word", ["p98<5ms", "p99<5", "errors<1", "p99<0ms", "p99<1.2.3s", ""])
def test_an_objective_that_cannot_be_read_says_how_to_write_it(word: str) -> None:
    with pytest.raises(InvalidInput, match="objective"):
        goal((word,))


def test_a_trial_that_its_alarm_stopped_between_two_ticks_is_degraded() -> None:
    # The last whole tick stands at 0.9 of the alarm's height; the rest came after it.
    found = verdict(counts(np.concatenate([level(3), slope(2, 0.45)])), planned_s=30.0)
    assert (found.state, found.cause) == (TrialState.DEGRADED, Cause.OVERLOAD)


def test_a_trial_that_its_alarm_stopped_for_growth_is_degraded_whatever_its_ticks() -> None:
    ticks = counts(np.concatenate([level(3), slope(2, 0.2)]))  # up to 0.4 of the alarm's height
    offer = TrialSpec(1, "test", RATE, 30.0, alarm_s=1.0, rise_s=0.5)
    alone = judge(offer, stats(ticks), ticks, HEALTHY, DEFAULT)
    assert alone.state is TrialState.UNDECIDED
    told = judge(replace(offer, alarmed=Cause.OVERLOAD), stats(ticks), ticks, HEALTHY, DEFAULT)
    assert (told.state, told.cause) == (TrialState.DEGRADED, Cause.OVERLOAD)


@pytest.mark.parametrize(("median_s", "cause"), [(0.1, Cause.OBJECTIVE), (0.04, None)])
def test_a_short_trial_misses_an_objective_where_half_of_its_answers_do(
    median_s: float, cause: Cause | None
) -> None:
    wanted = Goal(objectives=(Objective("p99", 0.06),))
    ticks = counts(level(5))
    shown = stats(ticks)
    shown = replace(shown, total=replace(shown.total, median_s=median_s))
    found = judge(TrialSpec(1, "test", RATE, 30.0, 1.0, 0.5), shown, ticks, HEALTHY, wanted)
    assert found.cause is cause
    assert (found.state is TrialState.UNDECIDED) is (cause is None)


def test_a_figure_of_less_than_a_millisecond_is_not_said_to_be_none() -> None:
    wanted = Goal(objectives=(Objective("p99", 0.0003),))
    found = verdict(counts(level(30)), p99_s=0.00042, goal=wanted)
    assert found.reasons == ("p99 was 0.42 ms, wanted p99<0.3ms",)


def test_one_request_at_a_time_that_is_too_slow_misses_an_objective_at_every_rate() -> None:
    wanted = Goal(objectives=(Objective("p99", 0.06),))
    ticks = counts(level(2))
    alone = TrialSpec(1, "ramp", None, 2.0, is_unloaded=True)
    assert judge(alone, stats(ticks), ticks, HEALTHY, wanted).cause is Cause.OBJECTIVE
    crowd = replace(alone, is_unloaded=False)
    assert judge(crowd, stats(ticks), ticks, HEALTHY, wanted).state is TrialState.UNDECIDED
