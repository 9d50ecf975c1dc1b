"""What is sent before a capacity is predicted."""

import numpy as np
import pytest
from made_stats import stats_of

from loadstone.analysis.model import NOT_JUDGED, Ticks, Trial
from loadstone.diagnosis.bottleneck import Case, name_bottleneck
from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse, Setup
from loadstone.diagnosis.resources import Resources
from loadstone.plan.load import ClosedLoad
from loadstone.search.low_load import LEAST_REQUESTS, LOW_S, MOST_LOW_S, PACE, SHARE, low_load

EACH_S = 0.1
NONE = np.zeros(8, np.int64)


def alone(cores: float | None, workers: float = 4.0, each_s: float = EACH_S) -> Trial:
    """One request after the other, on a machine of so many cores; None: nothing was watched."""
    stats = stats_of(4.0, 40, each_s)
    resources = None
    if cores is not None:
        use = ResourceUse("the machine's CPU", BottleneckKind.CPU, "machine", 1.0, cores, "cores")
        seen = Observation(4.0, 40, (use,), (("workers", workers),))
        verdict = name_bottleneck(Case(seen, Setup()))
        resources = Resources(seen, verdict.bottleneck, verdict.findings)
    ticks = Ticks(NONE, NONE, NONE, NONE)
    return Trial(1, None, "", 4.0, stats, ticks, NOT_JUDGED, resources=resources)


def low(trial: Trial, ceiling_rps: float = 5000.0):
    """The load that follows."""
    phase = low_load(ceiling_rps)
    assert isinstance(next(phase).load, ClosedLoad)
    return phase.send(trial).load


@pytest.mark.parametrize(
    ("cores", "workers", "at_once"), [(2.0, 4.0, 2), (8.0, 4.0, 4), (64.0, 64.0, 16), (8.0, 1.0, 1)]
)
def test_as_many_requests_come_at_once_as_the_service_works_on_side_by_side(
    cores, workers, at_once
):
    load = low(alone(cores, workers))
    rounds_s = np.array(load.offsets_s).reshape(-1, at_once)
    assert np.ptp(rounds_s, axis=1).max() < 0.01
    assert np.diff(rounds_s[:, 0]).min() >= PACE * EACH_S - 1e-9


@pytest.mark.parametrize("trial", [alone(None), alone(2.0), alone(8.0), alone(64.0, 64.0)])
def test_bursts_and_pauses_make_a_third_of_what_one_request_after_the_other_makes(trial):
    offsets_s = np.array(low(trial).offsets_s)
    begins_s = offsets_s[np.flatnonzero(np.diff(offsets_s, prepend=-LOW_S) > 3 * EACH_S)]
    assert len(begins_s) >= 3
    each = len(offsets_s) / len(begins_s)
    assert each / np.diff(begins_s) == pytest.approx(SHARE / EACH_S)
    assert offsets_s[-1] <= LOW_S


@pytest.mark.parametrize("each_s", [0.45, 0.7, 1.0, 1.5])
@pytest.mark.parametrize(("cores", "workers"), [(2.0, 1.0), (2.0, 2.0), (64.0, 64.0)])
def test_slow_requests_are_as_many_as_their_cost_needs_at_the_same_rate(cores, workers, each_s):
    offsets_s = np.array(low(alone(cores, workers, each_s)).offsets_s)
    assert len(offsets_s) > LEAST_REQUESTS
    assert offsets_s[-1] <= MOST_LOW_S
    begins_s = offsets_s[np.flatnonzero(np.diff(offsets_s, prepend=-LOW_S) > 1.5 * each_s)]
    each = len(offsets_s) / len(begins_s)
    assert each / np.diff(begins_s) == pytest.approx(SHARE / each_s)


def test_a_request_of_many_seconds_comes_in_a_single_burst():
    load = low(alone(8.0, each_s=20.0))
    assert len(load.offsets_s) == 4


def test_no_burst_is_faster_than_the_highest_rate_allowed():
    load = low(alone(8.0), ceiling_rps=2.0)
    assert np.diff(load.offsets_s).min() >= 0.5 - 1e-9
