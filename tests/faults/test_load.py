"""The loads that faults happen in."""

import pytest

from loadstone.errors import InvalidInput, MeasurementInvalid
from loadstone.plan.load import OpenLoad, StagedLoad
from loadstone.plan.model import Placement
from loadstone.workload.capacity import by_name
from loadstone.workload.fault import (
    FaultTerms,
    fault_groups,
    load_s,
    most_load_s,
    most_rate_rps,
)

KILL = "kill keystone service on one node"
WANTED = by_name("issue", 0)


def measurements(**terms):
    [group] = fault_groups(WANTED, FaultTerms(**terms))
    return group.measurements


def test_without_a_rate_n_is_measured_first_and_a_share_of_it_is_offered() -> None:
    search, fault = measurements(sentences=(KILL,), load=0.5, repeats=2)
    assert search.record.policy == "search"
    assert not search.faults
    at_n = fault.at_capacity(40.0)
    assert at_n.policy.request.load == OpenLoad(20.0, 30.0)
    assert at_n.policy.count == 2
    assert dict(at_n.record.parameters)["load"] == "20/s (50 % of N) for 30 s, 2 times"
    at_bound = fault.at_capacity(40.0, is_lower_bound=True)
    load = dict(at_bound.record.parameters)["load"]
    assert load == "20/s (50 % of the lower bound of N) for 30 s, 2 times"
    # A low N needs a longer baseline to know what is normal.
    assert fault.at_capacity(4.0).faults[0].at_s == 25.0


def test_at_a_low_n_loads_are_long_enough_to_show_a_recovery() -> None:
    def observed_s(capacity_rps: float, **terms) -> float:
        _, fault = measurements(load=0.5, **terms)
        found = fault.at_capacity(capacity_rps)
        return found.policy.request.load.duration_s - found.faults[0].at_s

    kill = f"{KILL} for 5 seconds"
    assert observed_s(4.0, sentences=(kill,)) == pytest.approx(5 + 400 / (5 * 2.0))
    assert observed_s(4.0, sentences=(kill,), repeats=1) == 125.0  # at most
    assert observed_s(4.0, sentences=(kill,), observe_s=30.0) == 30.0
    overload = "overload 2x for 60 seconds, then 0.5x"
    assert observed_s(4.0, sentences=(overload,)) == pytest.approx(60 + 400 / (5 * 1.0))


@pytest.mark.parametrize("load", [0.1, 0.6])
def test_the_run_has_time_for_the_longest_baseline_and_refuses_a_longer_one(load: float) -> None:
    terms = FaultTerms((KILL,), load=load, repeats=2)
    _, fault = measurements(sentences=(KILL,), load=load, repeats=2)
    slow = fault.at_capacity(1.0)
    assert slow.faults[0].at_s == pytest.approx(50 / load)
    assert terms.search_s + slow.budget_s <= most_load_s(terms)
    with pytest.raises(
        MeasurementInvalid,
        match=r"N is 0.9/s; a share of an N below 1/s .*give --rate and a --baseline",
    ):
        fault.at_capacity(0.9)


def test_an_overload_is_not_held_back_by_the_limit_of_a_search() -> None:
    overload = "overload 3x for 5 seconds"
    assert most_rate_rps(FaultTerms((KILL, overload), rate_rps=2000.0)) == 6000.0
    assert most_rate_rps(FaultTerms((KILL, overload), load=0.5)) == 7500.0
    assert most_rate_rps(FaultTerms((KILL,), rate_rps=8000.0)) == 8000.0
    assert most_rate_rps(FaultTerms((KILL,), rate_rps=20.0)) == 5000.0


def test_a_given_rate_needs_no_search() -> None:
    [fault] = measurements(sentences=(KILL,), rate_rps=20.0)
    assert fault.at_capacity is None
    with pytest.raises(InvalidInput, match="50 are needed"):
        measurements(sentences=(KILL,), rate_rps=1.0)


def test_capacity_that_is_left_is_searched_while_the_fault_is_held() -> None:
    _, fault, left = measurements(sentences=(KILL,), rate_rps=20.0, measures_left=True)
    assert fault.held is None
    assert left.held.sentence == KILL
    assert left.record.title == f"capacity left: {KILL}, token issue"
    with pytest.raises(InvalidInput, match="no remaining capacity"):
        measurements(sentences=("reload haproxy",), measures_left=True)


def test_after_an_overload_the_load_may_be_lower() -> None:
    [fault] = measurements(
        sentences=("overload 2x for 60 seconds, then 0.8x",), rate_rps=10.0, observe_s=90.0
    )
    load = fault.policy.request.load
    assert isinstance(load, StagedLoad)
    assert [(stage.duration_s, stage.from_rps) for stage in load.stages] == [
        (10.0, 10.0),
        (60.0, 20.0),
        (30.0, 8.0),
    ]


def test_of_an_expired_certificate_only_new_connections_tell() -> None:
    [fault] = measurements(sentences=("expire certificate",), rate_rps=20.0)
    assert fault.generator.scenario.connection == "iteration"
    assert dict(fault.record.parameters)["connections"] == "one for each iteration"
    with pytest.raises(InvalidInput, match="leave out --http2"):
        measurements(
            sentences=("expire certificate",), rate_rps=20.0, placement=Placement(http="2")
        )


def test_an_upgrade_happens_once() -> None:
    with pytest.raises(InvalidInput, match="--repeats 1"):
        measurements(sentences=("upgrade keystone to 30.0.0",))
    terms = FaultTerms(("upgrade keystone to 30.0.0",), rate_rps=10.0, repeats=1)
    assert load_s(terms) < most_load_s(terms)
