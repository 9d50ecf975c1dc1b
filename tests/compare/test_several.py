"""Several comparisons that are answered together."""

import math
from dataclasses import replace

import pytest

from loadstone.compare.answer import ComparisonAnswer, Criteria, MetricComparison, compare
from loadstone.compare.metrics import REQUEST_TIME, STATEMENTS, THROUGHPUT
from loadstone.compare.section import Compared, report_of
from loadstone.compare.several import report_of_several, share_of, together
from loadstone.report import junit

pytestmark = pytest.mark.pure
CRITERIA = Criteria(most_pairs=8)


def compared(
    throughput: list[float], request_time: list[float], criteria: Criteria = CRITERIA
) -> Compared:
    """Return a comparison of which these are the ratios of the pairs."""
    pairs = {
        THROUGHPUT: [(1.0, ratio) for ratio in throughput],
        REQUEST_TIME: [(1.0, ratio) for ratio in request_time],
    }
    return Compared(("A", "B"), (), (("validate", compare(pairs, criteria)),), criteria, True)


def spread(ratio: float, deviation: float, pairs: int = 8) -> list[float]:
    """Return ratios around one, with a deviation of their logarithms."""
    return [ratio * math.exp(deviation * (-1) ** number) for number in range(pairs)]


def rows(found: Compared) -> tuple[MetricComparison, ...]:
    return tuple(row for _, rows in found.metrics for row in rows)


def answers(found: Compared) -> list[ComparisonAnswer]:
    return [row.answer for row in rows(found)]


def just_seen(criteria: Criteria) -> list[float]:
    """Return ratios that one test at this error rate just tells from 1."""
    clear = spread(1.5, 0.001)
    for deviation in range(400, 0, -1):
        ratios = spread(1.2, deviation / 1000)
        if ComparisonAnswer.UNKNOWN not in answers(compared(clear, ratios, criteria)):
            return ratios
    raise AssertionError("no such ratios")


def sentence_of(ratio: float, low: float, high: float) -> str:
    """Return the answer of a comparison by SQL statements with this ratio and interval."""
    [row] = compare({STATEMENTS: [(10.0, 10.0 * ratio)] * 8}, CRITERIA)
    row = replace(row, ratio=ratio, low=low, high=high, answer=ComparisonAnswer.SLOWER)
    found = Compared(("A", "B"), (), (("validate", (row,)),), CRITERIA, True)
    [section] = report_of(found).sections
    return section.answer.sentence


def test_sql_statements_are_plural() -> None:
    assert "SQL statements per request of B are 20 % higher than those of A" in sentence_of(
        1.2, 1.1, 1.3
    )
    assert "SQL statements per request of B equal those of A" in sentence_of(1.0, 0.9, 1.1)


def test_the_end_of_an_interval_shows_on_which_side_of_1_it_is() -> None:
    assert "(95 %: 1.0004 to 1.080 times)" in sentence_of(1.04, 1.0004, 1.08)


def test_no_answer_is_taken_away() -> None:
    share = share_of(CRITERIA, 3)
    first = compared(spread(1.5, 0.001), just_seen(share), share)
    others = [compared(spread(1.0, 0.5), spread(1.0, 0.5), share) for _ in range(2)]

    found = together([first, *others], CRITERIA)

    assert answers(found[0]) == answers(first) == [ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER]
    assert [answers(one) for one in found[1:]] == [
        [ComparisonAnswer.UNKNOWN, ComparisonAnswer.UNKNOWN]
    ] * 2


def test_the_share_of_a_comparison_that_differs_passes_to_the_others() -> None:
    share = share_of(CRITERIA, 2)
    differs = compared(spread(1.5, 0.001), spread(1.5, 0.001), share)
    near = just_seen(CRITERIA)
    unsure = compared(spread(1.5, 0.001), near, share)
    assert ComparisonAnswer.UNKNOWN in answers(unsure)

    _, found = together([differs, unsure], CRITERIA)

    assert answers(found) == [ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER]
    assert rows(found)[1].low > rows(unsure)[1].low


def test_a_comparison_that_could_not_be_measured_has_no_share() -> None:
    nothing = Compared(("A", "C"), (), (), CRITERIA, True)
    alone = compared(spread(1.5, 0.001), just_seen(CRITERIA))

    found = together([alone, nothing], CRITERIA)

    assert answers(found[0]) == [ComparisonAnswer.FASTER, ComparisonAnswer.SLOWER]
    assert answers(found[1]) == []


def test_of_what_was_not_measured_no_setting_is_said_to_be_the_same() -> None:
    same = "A and B do not differ in any setting that is known."
    nothing = Compared(("A", "C"), (), (("validate", ()),), CRITERIA, True, notes=("it failed",))

    assert [one.text for one in report_of(nothing).statements] == ["it failed"]
    assert same in [one.text for one in report_of(compared([1.0] * 8, [1.0] * 8)).statements]


def test_the_pairs_that_an_undecided_guard_needs_are_those_that_tell_the_ratio_from_its_limit():
    [(_, (row, *_))] = compared(spread(1 / 1.06, 0.02), [1.0] * 8).metrics
    # Not the few that tell 5 % from nothing.
    needed = row.pairs_to_decide(0.05)
    assert needed == row.pairs_to_find(1.06 / 1.05 - 1) == 93
    assert row.pairs_to_decide(0.06) is None  # at its limit
    assert row.pairs_to_decide(0.5) is None  # no more than there were


def test_the_title_tells_a_metric_with_another_answer() -> None:
    title = report_of(compared(spread(1.2, 0.001), spread(1.5, 0.001))).title
    assert "validate throughput 1.200 times" in title
    assert "validate request time 1.500 times" in title
    assert title.count("faster") == title.count("slower") == 1
    alike = report_of(compared(spread(1.2, 0.001), spread(0.8, 0.001))).title
    assert "request time" not in alike


def test_what_a_run_left_is_named_in_every_format_and_hides_no_missing_answer() -> None:
    known = replace(
        compared(spread(1.5, 0.001), spread(1.5, 0.001)), left=("20261128-2100-abcdef",)
    )
    report = report_of_several([known], " --store here")
    assert (report.exit_code, report.is_clean) == (1, False)
    [said] = [one.text for one in report.statements if "is left" in one.text]
    assert said.endswith("loadstone results clean 20261128-2100-abcdef --store here")
    assert 'failures="1"' in junit.render(report)

    unknown = compared(spread(1.0, 0.5), spread(1.0, 0.5))
    both = report_of_several([known, unknown])
    assert (both.exit_code, both.is_clean) == (4, False)
    assert len([one for one in both.statements if "is left" in one.text]) == 1


def test_a_difference_that_is_not_shown_is_not_told_as_one() -> None:
    found = compared(spread(1.5, 0.001), spread(1.02, 0.5))
    [section] = report_of(found).sections
    [meaning] = section.statements
    assert meaning.text.startswith("At this load, B completes 50 % more")


@pytest.mark.parametrize(
    ("ratio", "throughput", "meaning"),
    [
        (87.31, "is 87.3 times that of", "B completes 87.3 times as much"),
        (1.5, "is 50 % higher than that of", "B completes 50 % more"),
        (0.6, "is 40 % lower than that of", "B completes 40 % less"),
        (0.0123, "is 0.0123 times that of", "B completes 0.0123 times as much"),
    ],
)
def test_a_large_difference_is_a_factor(ratio: float, throughput: str, meaning: str) -> None:
    [section] = report_of(compared(spread(ratio, 0.001), spread(1.5, 0.001))).sections
    assert throughput in section.answer.sentence
    assert meaning in section.statements[0].text
