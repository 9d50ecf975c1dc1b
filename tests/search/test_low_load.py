"""What is sent before a capacity is predicted."""

import numpy as np
import pytest
from made_stats import stats_of

from loadstone.analysis.model import NOT_JUDGED, Ticks, Trial
from loadstone.monitor.bottleneck import Case, name_bottleneck
from loadstone.monitor.demand import BottleneckKind, Observation, ResourceUse, Setup
from loadstone.monitor.resources import Resources
from loadstone.plan.load import ClosedLoad, OpenLoad, ReplayLoad
from loadstone.search.low_load import LOW_S, SHARE, low_load

EACH_S = 0.1
NONE = np.zeros(8, np.int64)


def alone(cores: float | None, workers: float = 4.0) -> Trial:
    """One request after the other, on a machine of so many cores; None: nothing was watched."""
    stats = stats_of(4.0, 40, EACH_S)
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
    ("cores", "workers", "size"), [(2.0, 4.0, 2), (8.0, 4.0, 4), (64.0, 64.0, 16)]
)
def test_as_many_requests_come_at_once_as_the_service_works_on_side_by_side(cores, workers, size):
    load = low(alone(cores, workers))
    assert isinstance(load, ReplayLoad)
    offsets_s = np.array(load.offsets_s).reshape(-1, size)
    assert np.ptp(offsets_s, axis=1).max() < 0.01
    rate_rps = SHARE / EACH_S
    assert np.diff(offsets_s[:, 0]) == pytest.approx(size / rate_rps)
    assert offsets_s.size / LOW_S == pytest.approx(rate_rps, rel=0.2)


@pytest.mark.parametrize("trial", [alone(None), alone(8.0, 1.0), alone(1.0)])
def test_one_worker_or_a_service_that_is_not_watched_gets_one_at_a_time(trial):
    load = low(trial)
    assert isinstance(load, OpenLoad)
    assert load.rate_rps == pytest.approx(SHARE / EACH_S)


def test_no_burst_is_faster_than_the_highest_rate_allowed():
    load = low(alone(8.0), ceiling_rps=2.0)
    assert np.diff(load.offsets_s).min() >= 0.5 - 1e-9
