"""Two stored runs that were not measured as a pair."""

from dataclasses import replace

import pytest
from realistic import keystone

from loadstone.compare.answer import ComparisonAnswer, Criteria
from loadstone.compare.measure import MOST_PAIRS, PAIRED, ROLE
from loadstone.compare.metrics import THROUGHPUT
from loadstone.compare.section import report_of
from loadstone.compare.stored import compare_runs
from loadstone.errors import InvalidInput, MeasurementInvalid
from loadstone.result.model import Run
from loadstone.search.model import Capacity

RESULT, _ = keystone()


def run(number: int, capacity: Capacity, **parameters: str) -> Run:
    search = replace(
        RESULT.measurements[0],
        capacity=capacity,
        parameters=tuple(parameters.items()),
        trials=(),
    )
    return replace(RESULT, run_id=f"2026110{number}-0300-ab12cd", measurements=(search,))


def compared(a: Run, b: Run):
    return compare_runs(a, b, Criteria(), lambda _run_id, _trial: None)


def test_n_with_different_objectives_is_not_compared() -> None:
    found = Capacity(100.0, 98.0, 102.0, 0.95)
    loose = run(1, found, objectives="no growing backlog, no errors")
    strict = run(2, found, objectives="p95<100ms")
    with pytest.raises(InvalidInput, match=r"different objectives \(no growing .*; p95<100ms\)"):
        compared(loose, strict)
    assert compared(loose, run(4, found, objectives="no growing backlog, no errors"))
    same = run(3, found, objectives="errors<0.1%")
    assert compared(loose, same).notes == ()


def test_an_interval_that_rarely_holds_n_decides_nothing() -> None:
    a, b = Capacity(100.0, 99.5, 100.5, 0.2), Capacity(103.5, 103.2, 103.9, 0.2)
    found = compared(run(1, a, method="mlrsearch"), run(2, b, method="mlrsearch"))
    assert found.metrics[0][1][0].answer is ComparisonAnswer.UNKNOWN
    assert "holds N in 20 % of searches only" in found.notes[0]


def test_of_repeated_searches_the_combined_result_is_compared() -> None:
    runs = []
    for number, rate_rps in ((1, 100.0), (2, 140.0)):
        known = Capacity(rate_rps, 0.98 * rate_rps, 1.02 * rate_rps, 0.95)
        [whole] = run(number, known).measurements
        single = replace(whole, capacity=Capacity(None, 50.0, 200.0, 0.95), is_repeat=True)
        runs.append(replace(run(number, known), measurements=(single, single, whole)))
    [(_, rows)] = compared(*runs).metrics
    assert rows[0].answer is ComparisonAnswer.FASTER


def test_a_finished_comparison_without_a_complete_pair_has_no_answer() -> None:
    sides = []
    for number, role in ((1, "A"), (2, "B")):
        whole = fixed(number, None)
        [load] = whole.measurements
        known = {PAIRED: "label", ROLE: role, MOST_PAIRS: "12"}
        load = replace(load, policy="turns", trials=(), parameters=tuple(known.items()))
        sides.append(replace(whole, measurements=(load,)))
    with pytest.raises(MeasurementInvalid, match="has no complete pair of trials"):
        compared(*sides)


def test_searches_that_were_repeated_so_many_times_are_compared_with_others() -> None:
    runs = [run(1, Capacity(100.0, 98.0, 102.0, 0.95)), run(2, Capacity(140.0, 138.0, 142.0, 0.95))]
    [single], [whole] = (one.measurements for one in runs)
    for count in (3, 5):
        repeated = replace(whole, title=f"{single.title}, {count} searches")
        [(_, rows)] = compared(runs[0], replace(runs[1], measurements=(repeated,))).metrics
        assert rows[0].answer is ComparisonAnswer.FASTER


def test_what_differs_in_the_load_is_named_beside_the_answer() -> None:
    a = run(1, Capacity(100.0, 98.0, 102.0, 0.95), users="10", HTTP="1.1")
    b = run(2, Capacity(140.0, 138.0, 142.0, 0.95), users="50", HTTP="1.1")
    found = compared(a, b)
    [(title, (metric, *_))] = found.metrics
    assert metric.answer is ComparisonAnswer.FASTER
    [setting] = [one for one in found.settings if one.name.endswith("users")]
    assert (setting.name, setting.values) == (f"{title}: users", ("10", "50"))


def test_the_wide_side_of_an_interval_counts() -> None:
    """A is at least 80: B, at 84, may be faster."""
    found = compared(
        run(1, Capacity(100.0, 80.0, 102.0, 0.95)), run(2, Capacity(84.0, 83.0, 85.0, 0.95))
    )
    assert found.metrics[0][1][0].answer is ComparisonAnswer.UNKNOWN


def fixed(number: int, rate_rps: float | None) -> Run:
    """Return a run of one load: at a rate, or in a closed loop."""
    search = RESULT.measurements[0]
    trial = replace(search.trials[0], rate_rps=rate_rps)
    load = replace(search, policy="fixed", capacity=None, trials=(trial,), parameters=())
    return replace(RESULT, run_id=f"2026110{number}-0300-ab12cd", measurements=(load,))


def test_the_throughput_of_a_schedule_is_not_compared() -> None:
    found = compared(fixed(1, None), fixed(2, 10.0))
    [(title, rows)] = found.metrics
    assert THROUGHPUT not in [row.metric for row in rows]
    [note] = found.notes
    assert note.startswith(f"{title}: the load of A was a closed loop and that of B 10/s")
    alike = compared(fixed(1, None), fixed(2, None))
    assert alike.notes == ()
    assert THROUGHPUT in [row.metric for row in alike.metrics[0][1]]


def failing(number: int, ok: int, count: int) -> Run:
    """Return a run of a closed loop of which this many iterations succeeded."""
    one = fixed(number, None)
    [trial] = one.measurements[0].trials
    total = replace(trial.stats.total, ok=ok, count=count)
    trial = replace(trial, stats=replace(trial.stats, total=total))
    return replace(one, measurements=(replace(one.measurements[0], trials=(trial,)),))


def test_iterations_that_failed_are_named_beside_the_latencies_of_the_others() -> None:
    few, many = failing(1, 297, 300), failing(2, 87, 300)
    [note] = compared(few, many).notes
    assert note.endswith(
        ": 213 of 300 iterations of B failed; its latencies are those of the others"
    )
    [note] = compared(many, few).notes
    assert ": 213 of 300 iterations of A failed" in note
    with pytest.raises(InvalidInput, match="all 300 iterations of B failed"):
        compared(few, failing(3, 0, 300))


def test_runs_that_measured_one_scenario_in_other_ways_say_so() -> None:
    search = run(1, Capacity(100.0, 98.0, 102.0, 0.95))
    with pytest.raises(InvalidInput, match=r"issue \(a search for N\) and .* \(a fixed load\)"):
        compared(search, fixed(2, 10.0))


def test_equal_figures_are_not_said_to_differ_by_0_percent() -> None:
    found = Capacity(100.0, 98.0, 102.0, 0.95)
    [section] = report_of(compared(run(1, found), run(2, found))).sections
    assert "N of 20261102-0300-ab12cd equals that of 20261101-0300-ab12cd (" in (
        section.answer.sentence
    )


def test_a_run_is_not_compared_with_itself() -> None:
    one = run(1, Capacity(100.0, 98.0, 102.0, 0.95))
    with pytest.raises(InvalidInput, match="A and B are the same run"):
        compared(one, one)


def test_a_search_without_a_number_says_why_n_is_not_compared() -> None:
    number, wide = Capacity(100.0, 98.0, 102.0, 0.95), Capacity(None, 60.0, 120.0, 0.95)
    why = r"N of B is no number \(60 to 120/s\), so that it is not compared"
    with pytest.raises(InvalidInput, match=why):
        compared(run(1, number), run(2, wide))
    trials = RESULT.measurements[0].trials
    with_cpu = [
        replace(one, measurements=(replace(one.measurements[0], trials=trials),))
        for one in (run(1, number), run(2, wide))
    ]
    found = compared(*with_cpu)
    assert [row.metric.name for row in found.metrics[0][1]] == ["CPU per request"]
    assert "so that it is not compared" in found.notes[0]
    bound = Capacity(50.0, 50.0, None, 0.95)  # the load that was allowed, not the service
    with pytest.raises(InvalidInput, match=r"N of A is no number \(at least 50\.0/s\)"):
        compared(run(1, bound), run(2, Capacity(30.0, 29.0, 31.0, 0.95)))
