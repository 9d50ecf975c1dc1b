import numpy as np
import pytest
from stalling_service import stalling_service

from loadstone.analysis.stats import compute_stats
from loadstone.engine.local import run
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.plan.script import Column, Step, Text

pytestmark = pytest.mark.verify

RATE_RPS, SECONDS = 200, 10


def test_a_stall_stands_in_the_percentiles_as_it_was() -> None:
    """500 ms in every 5 s; the truth is the schedule and the instants at which it was answered."""
    count = RATE_RPS * SECONDS
    step = Step("get", "GET", (Text("/"), Column("number")))
    numbers = tuple(str(number) for number in range(count))
    with stalling_service(5.0, 0.5) as service:
        plan = Plan(
            Origin("http", "127.0.0.1", service.port),
            (step,),
            OpenLoad(RATE_RPS, SECONDS),
            {"number": numbers},
            limits=Limits(max_connections=256),
        )
        measured = run(plan)
        samples = measured.samples
        log = np.array(sorted(service.end()))
    assert (log[:, 0] == np.arange(count)).all()
    read_ns, answered_ns = log[:, 1], log[:, 2]
    order = np.argsort(samples.iteration)
    # Nothing is read before it is sent: the nearest that the two came is where both clocks meet.
    start_ns = (read_ns - samples.sent_ns[order]).min()
    due_ns = np.arange(count) / RATE_RPS * 1e9
    exact_ms = (answered_ns - start_ns - due_ns) / 1e6
    p99_ms = 1000 * compute_stats(samples, ("",), offered_s=SECONDS).stats.total.p99_s
    # A machine without a free core reads late what was answered in time, as it sends late.
    late_ms = measured.health.lag_p99_ms
    exact_p99_ms = np.percentile(exact_ms, 99)
    assert p99_ms == pytest.approx(exact_p99_ms, abs=max(0.02 * exact_p99_ms, late_ms))
    # A tenth of the time it stood still: a tenth of them waited for up to 500 ms.
    assert p99_ms > 400
    service_ms = (samples.done_ns - samples.sent_ns)[order] / 1e6
    assert p99_ms >= np.percentile(service_ms, 99)
