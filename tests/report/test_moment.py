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


def test_iterations_that_no_rate_makes_due_are_started():
    line = moment.now("ramp: 4 clients", HALF, latency_ms=None, is_paced=False)
    assert "| started 10.1/s | done 9.9/s |" in line
    assert "due" not in line


def test_a_stretch_without_a_rate_is_not_called_undecided():
    trial = replace(stretch_of(200, 13.5).trials[0], purpose="issue serially")
    assert moment.ended(trial) == (
        "    1           –  ",  # noqa: RUF001
        "saturated",
        "  14.81/s done  issue serially, mean 67.5 ms",
    )


def test_when_the_load_is_over_it_is_said_what_is_waited_for():
    line = moment.now("issue", replace(HALF, due=113, sent=113), latency_ms=None, at_most_s=0.0)
    assert line.endswith("errors 1 | load over, waiting for 13 answers")
    line = moment.now("issue", HALF, latency_ms=None, count=300, at_most_s=0.0)
    assert line.endswith("| 100 of 300 | load over, waiting for 1 answer")


def test_without_a_rate_nothing_is_due():
    assert "| started 10.1/s |" in moment.now("issue", HALF, latency_ms=None, is_paced=False)
