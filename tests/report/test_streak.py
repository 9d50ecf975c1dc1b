"""Trials in a row that failed alike stand in one line."""

from dataclasses import replace

from made_stats import stats_of, with_errors
from realistic import keystone
from rendered import in_full, page_of

from loadstone.analysis.model import Cause, Trial, TrialState, Verdict
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.report import streak
from loadstone.result.model import Run

RESULT, _ = keystone()
KIND = "429 Too Many Requests"
FINDING = RESULT.measurements[0]


def refused(number: int, rate_rps: float | None = None, load_s: float = 0.8) -> Trial:
    trial = FINDING.trials[0]
    stats = stats_of(load_s, 50, 0.2, ((KIND, 10),))
    return replace(
        trial,
        number=number,
        rate_rps=rate_rps,
        purpose=f"meter with {number} to 90 in flight",
        stats=stats,
        verdict=Verdict(TrialState.DEGRADED, (f"reason of trial {number}",), Cause.ERRORS),
    )


def with_trials(*trials: Trial) -> Run:
    return replace(RESULT, measurements=(replace(FINDING, trials=trials),))


def without_samples(_: Trial) -> Samples:
    raise EnvironmentUnusable("kept without samples")


def numbers(*trials: Trial) -> list[str]:
    return [streak.numbers(alike) for alike in streak.folded(trials)]


def test_the_terminal_folds_a_series_into_one_line() -> None:
    text = in_full(with_trials(*(refused(number) for number in range(5, 17))))
    lines = text.splitlines()
    assert sum("12 trials at saturation" in line for line in lines) == 1
    folded = f"12 trials at saturation, 0.8 s each: all failed with {KIND}"
    assert any(line.split() == ["5-16", *folded.split()] for line in lines)
    row = next(line for line in lines if "5-16" in line)
    assert (row.split()[1], row.split()[-1]) == ("degraded", "120")
    assert "reason of trial 7" not in text


def test_the_page_folds_a_series_into_one_line() -> None:
    page = page_of(with_trials(*(refused(number) for number in range(5, 17))), without_samples)
    assert f"12 trials at saturation, 0.8 s each: all failed with {KIND}" in page
    assert 'class="right">5-16</th>' in page
    assert "reason of trial 7" not in page


def test_different_lengths_and_a_rate_are_told() -> None:
    alike = tuple(refused(number, 92.0, 0.1 * number) for number in (5, 6, 12))
    assert (
        streak.sentence(alike) == f"3 trials at 92.0/s, 0.5 to 1.2 s each: all failed with {KIND}"
    )


def test_what_is_not_alike_stands_alone() -> None:
    other = replace(refused(4), stats=with_errors(refused(4).stats, ("reset", 3)))
    held = replace(refused(4), verdict=Verdict(TrialState.SUSTAINED, ("steady",)))
    for between in (other, held, refused(4, 50.0)):
        shown = numbers(*map(refused, (1, 2, 3)), between, *map(refused, (5, 6)))
        assert shown == ["1-3", "4", "5", "6"]


def test_rates_that_differ_are_no_series() -> None:
    assert numbers(*(refused(n, 40.0 + n) for n in (1, 2, 3, 4))) == ["1", "2", "3", "4"]
