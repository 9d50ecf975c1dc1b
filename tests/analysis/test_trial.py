from dataclasses import fields, replace

import numpy as np
import pytest

from loadstone.analysis.goal import Goal
from loadstone.analysis.judge import TrialSpec
from loadstone.analysis.trial import assess, checked, offered_s
from loadstone.engine.health import Health
from loadstone.engine.samples import Outcome, Samples
from loadstone.plan.load import ClosedLoad
from loadstone.search.model import TrialRequest

HEALTH = Health(0.0, 0.0, 0.0, 0.1, 6.5, 0.0, 1)


def one_after_the_other(count: int, each_s: float) -> Samples:
    ends = (np.arange(1, count + 1) * each_s * 1e9).astype(np.int64)
    begins = ends - int(each_s * 1e9)
    return Samples(
        due_ns=begins,
        sent_ns=begins,
        done_ns=ends,
        first_byte_us=np.zeros(count, np.uint32),
        iteration=np.arange(count, dtype=np.uint32),
        connection=np.zeros(count, np.uint16),
        status=np.full(count, 201, np.uint16),
        outcome=np.full(count, Outcome.OK, np.uint8),
        action=np.zeros(count, np.uint8),
        retried=np.zeros(count, np.uint8),
        generator=np.zeros(count, np.uint16),
    )


@pytest.mark.parametrize("count", [6, 60, 61])
def test_the_throughput_of_so_many_iterations_is_over_the_time_that_they_took(count):
    samples = one_after_the_other(count, 6.5 / 60)
    offer = TrialRequest(ClosedLoad(1, 600.0, count), "serially").spec(1)
    summary = assess(offer, samples, HEALTH, Goal()).stats
    assert summary.throughput_rps == pytest.approx(60 / 6.5)
    assert summary.throughput_rps == summary.completed_rps


def test_a_short_load_at_a_rate_does_not_complete_more_than_it_offered():
    samples = one_after_the_other(5, 0.1)
    at_ten = replace(samples, done_ns=samples.due_ns + 10_000_000)
    spec = TrialSpec(1, "test", 10.0, 0.5)
    assert checked(spec, at_ten, HEALTH, (), ("get",)).stats.throughput_rps == pytest.approx(10.0)


def test_the_load_ends_with_its_last_iteration_and_not_with_the_steps_that_follow() -> None:
    """The second step of an iteration is due when the first has ended, in the drain as well."""
    first = one_after_the_other(40, 0.1)
    second_ns = first.due_ns + 3_000_000_000
    rows = {field.name: np.concatenate([getattr(first, field.name)] * 2) for field in fields(first)}
    rows["due_ns"] = np.concatenate([first.due_ns, second_ns])
    rows["done_ns"] = np.concatenate([second_ns, second_ns + 3_000_000_000])
    stopped = TrialSpec(1, "test", 10.0, 30.0)
    assert offered_s(Samples(**rows), stopped) == pytest.approx(4.0)
