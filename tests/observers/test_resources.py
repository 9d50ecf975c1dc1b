"""What part of a load the use of resources is taken from."""

import numpy as np
import pytest
from made_stats import stats_of

from loadstone.analysis.model import NOT_JUDGED, TICK_S, Ticks, Trial
from loadstone.monitor.metrics import Reading, Recorder
from loadstone.observers.resources import steady_part

START_S = 1000.0


def closed_loop(users: int, each_s: float, begun_s: float) -> Trial:
    """Iterations of one length, of which `users` begin together again and again."""
    begins_s = np.arange(0, begun_s, each_s).repeat(users)
    load_s = begins_s[-1] + each_s
    edges_s = np.arange(0, load_s + TICK_S, TICK_S)
    due, _ = np.histogram(begins_s, edges_s)
    ok, _ = np.histogram(begins_s + each_s, edges_s)
    none = np.zeros_like(ok)
    ticks = Ticks(due, ok, none, none)
    stats = stats_of(load_s, len(begins_s), each_s)
    return Trial(1, None, "", load_s, stats, ticks, NOT_JUDGED, start_s=START_S)


def readings(seconds: int):
    recorder = Recorder()
    for second in range(seconds + 1):
        recorder.add(START_S + second, [Reading("keystone", "cpu_seconds_total", second)])
    return recorder.metrics()


def test_of_long_iterations_the_part_between_the_first_end_and_the_last_begin_counts():
    trial = closed_loop(users=4, each_s=2.0, begun_s=20.0)
    requests, (from_s, to_s) = steady_part(trial, readings(20))
    assert from_s >= START_S + 2.0
    assert to_s <= START_S + 18.5  # the last four begin at 18 s and end at 20 s
    assert requests / (to_s - from_s) == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    ("each_s", "begun_s"),
    [
        (0.1, 20.0),  # iterations that are short beside the load
        (2.0, 4.0),  # little is left between the first end and the last begin
    ],
)
def test_else_all_of_the_load_counts(each_s, begun_s):
    trial = closed_loop(users=4, each_s=each_s, begun_s=begun_s)
    assert steady_part(trial, readings(20)) is None
