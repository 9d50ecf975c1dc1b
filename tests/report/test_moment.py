"""The lines that are shown while load is made."""

from dataclasses import replace

from study_files import stretch_of

from loadstone.engine.progress import Progress
from loadstone.report import moment

HALF = Progress(elapsed_s=10.0, due=101, sent=101, ok=99, failed=1, latency_ms=0.0)


def test_with_a_number_of_iterations_the_time_left_is_reckoned_from_those_that_ended():
    line = moment.now("issue", HALF, latency_ms=68.2, count=300, at_most_s=590.0)
    assert line == (
        "  issue | 10 s | due 10.1/s | done 9.9/s | latency 68 ms | waiting 1 | errors 1"
        " | 100 of 300 | about 20 s left"
    )


def test_without_one_the_longest_time_is_said_and_a_latency_that_is_not_known_is_none():
    line = moment.now("issue", HALF, latency_ms=None, at_most_s=50.0)
    assert "latency – |" in line  # noqa: RUF001 (the dash of all tables)
    assert line.endswith("errors 1 | at most 50 s left")


def test_a_stretch_without_a_rate_is_not_called_undecided():
    trial = replace(stretch_of(200, 13.5).trials[0], purpose="issue serially")
    assert moment.ended(trial) == (
        "    1           –  ",  # noqa: RUF001
        "metered",
        "  14.81/s done  issue serially, mean 67.5 ms",
    )
