"""Requests that a search abandons at the end of its budget."""

from dataclasses import replace

import numpy as np
import pytest
from realistic import keystone

from loadstone.engine.samples import Outcome, Samples
from loadstone.plan.model import Limits
from loadstone.workload.requests import mark_abandoned

_, SAMPLES = keystone()
LIMITS = Limits(request_timeout_s=10.0)


def ended(outcome: Outcome, after_s: float) -> Samples:
    """One request that was sent after a second and ended with this outcome."""
    one = SAMPLES[0, 3].picked(slice(0, 1))
    sent_ns = np.array([10**9])
    return replace(
        one,
        sent_ns=sent_ns,
        done_ns=sent_ns + np.int64(after_s * 1e9),
        outcome=np.array([outcome], np.uint8),
    )


@pytest.mark.parametrize(
    "late", [Outcome.WRITE_TIMEOUT, Outcome.FIRST_BYTE_TIMEOUT, Outcome.BODY_TIMEOUT]
)
def test_what_was_abandoned_before_its_time_out_is_no_failure(late: Outcome) -> None:
    assert mark_abandoned(ended(late, 9.9), LIMITS).outcome[0] == Outcome.NOT_SENT
    assert mark_abandoned(ended(late, 10.0), LIMITS).outcome[0] == late


@pytest.mark.parametrize(
    "other",
    set(Outcome)
    - {Outcome.NOT_SENT}
    - {Outcome.WRITE_TIMEOUT, Outcome.FIRST_BYTE_TIMEOUT, Outcome.BODY_TIMEOUT},
)
def test_every_other_outcome_stays(other: Outcome) -> None:
    assert mark_abandoned(ended(other, 0.5), LIMITS).outcome[0] == other
