"""Several searches together: the truth is in their interval, whatever each of them saw."""

from dataclasses import replace

import pytest
from simulator.families import draw
from simulator.simulator import Simulator

from loadstone.analysis.model import Cause
from loadstone.search import repeats
from loadstone.search.model import Capacity, CapacityKind
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

FOUND = Capacity(100.0, 98.0, 101.0, 0.95)


def combined(searches: list[Capacity]) -> Capacity:
    return repeats.combined(searches, 60.0)


def at(rate_rps: float) -> Capacity:
    return Capacity(rate_rps, 0.98 * rate_rps, 1.01 * rate_rps, 0.95)


def test_searches_that_differ_widen_the_interval_to_what_lies_between_them() -> None:
    found = combined([at(90.0), at(100.0), at(111.11)])
    # t with two degrees of freedom: 100 * exp(-4.303 * 0.1054 / sqrt(3)).
    assert found.low_rps == pytest.approx(76.97, rel=0.001)
    assert found.high_rps == pytest.approx(129.9, rel=0.001)
    assert found.rate_rps is None
    assert found.words == (
        "known to within 30 % only, which is too wide for a number: more searches tell",
        "3 searches found 90 to 111.1/s, 23.5 % apart",
    )


def test_searches_that_agree_by_luck_are_not_sure_beyond_their_own_intervals() -> None:
    found = combined([FOUND] * 4)
    assert found.rate_rps == pytest.approx(100.0)
    assert found.low_rps == pytest.approx(99.0, rel=0.001)
    assert found.high_rps == pytest.approx(100.5, rel=0.001)


def test_a_search_without_a_number_is_told() -> None:
    lost = Capacity(None, None, None, 0.0, ("the load generator was the limit",))
    found = combined([FOUND, lost, at(100.2)])
    assert found.rate_rps == pytest.approx(100.1, rel=0.001)
    assert found.words[1] == ("1 of 3 searches found no interval: the load generator was the limit")


def test_a_bound_that_one_search_found_is_in_the_interval() -> None:
    ceiling = Capacity(102.0, 102.0, None, 0.95, ("at least 102/s, the ceiling",))
    assert combined([FOUND, ceiling]).high_rps == 102.0
    assert combined([FOUND, at(100.2), ceiling]).high_rps == 102.0
    failed = Capacity(None, None, 97.0, 0.0, ("no more than 97/s",))
    assert combined([FOUND, failed]).low_rps == 97.0


def test_what_a_single_search_said_is_not_lost() -> None:
    spoken = replace(FOUND, words=("capacity depends on the backlog",))
    found = combined([FOUND, spoken, spoken])
    assert found.words[1] == "capacity depends on the backlog (of 2, 3)"


def test_without_any_number_there_is_none() -> None:
    lost = Capacity(None, None, None, 0.0, ("the service answers errors only",))
    found = combined([lost, lost])
    assert found.rate_rps is None
    assert "2 of 2 searches found no interval: the service answers errors only" in found.words


def test_searches_that_all_reached_the_ceiling_say_at_least() -> None:
    held = Capacity(50.0, 50.0, None, 0.95, ("at least 50/s, the ceiling",))
    found = combined([held, held])
    assert (found.rate_rps, found.low_rps, found.high_rps) == (50.0, 50.0, None)
    assert found.words[0] == "at least 50/s, the ceiling"


@pytest.mark.long
def test_short_searches_of_a_noisy_service_cover_the_truth_together() -> None:
    covered = 0
    for index in range(12):
        service = draw("bursts", 800 + index)
        simulator = Simulator(service, index)
        settings = SearchSettings(budget_s=60.0)
        found = combined(
            [search(STRATEGIES["meter"](settings), simulator.measure)[0] for _ in range(3)]
        )
        assert found.low_rps is not None
        assert found.high_rps is not None
        covered += found.low_rps <= service.long_run_rps <= found.high_rps
    assert covered >= 11


def test_a_range_beside_a_search_without_an_interval_is_kept():
    ranged = Capacity(None, 40.0, 52.0, 0.95, ("known to within 13 % only",))
    lost = Capacity(None, None, None, 0.0, ("the load generator was the limit",))
    found = combined([ranged, lost])
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, 40.0, 52.0)
    assert "1 of 2 searches found an interval, so nothing is combined" in found.words


def test_searches_together_are_no_surer_than_the_least_sure_of_them() -> None:
    unsure = replace(FOUND, confidence=0.46)
    found = combined([FOUND, unsure, FOUND])
    assert found.rate_rps == pytest.approx(100.0)
    assert found.confidence == 0.46


def test_searches_that_contradict_each_other_are_no_number() -> None:
    found = combined([Capacity(100.0, 99.0, 101.0, 0.95), Capacity(130.0, 129.0, 131.0, 0.95)])
    # t with one degree of freedom would give 22 to 605.
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, None, None)
    assert found.words == (
        "2 searches found 100 to 130/s, 30.0 % apart, which is too far for an interval: more "
        "searches tell",
    )


def test_a_bound_that_contradicts_searches_that_agree_is_named() -> None:
    ceiling = Capacity(250.0, 250.0, None, 0.95, ("at least 250/s, the ceiling",))
    found = combined([at(100.0), at(101.0), ceiling])
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, None, None)
    assert found.words[0] == (
        "2 searches found 100 to 101/s, 1.0 % apart, and the bound of another search is too far "
        "for an interval: more searches tell"
    )


def test_what_all_searches_share_is_that_of_the_repeated_search() -> None:
    limited = replace(FOUND, kind=CapacityKind.REFUSAL)
    assert combined([limited, limited]).kind is CapacityKind.REFUSAL
    assert combined([limited, FOUND]).kind is None
    held = Capacity(50.0, 50.0, None, 0.95, ("at least 50/s, the ceiling",), CapacityKind.CEILING)
    assert combined([held, held]).kind is CapacityKind.CEILING
    failing = Capacity(None, None, None, 0.0, ("errors at any rate",), causes=(Cause.ERRORS,))
    unclear = replace(failing, causes=(Cause.DRIFT,))
    assert combined([failing, failing]).causes == (Cause.ERRORS,)
    assert combined([failing, replace(failing, causes=())]).causes == ()
    # A service that changed does not fall short at any rate.
    assert combined([failing, unclear]).causes == (Cause.DRIFT,)


@pytest.mark.parametrize("cause", [Cause.ERRORS, Cause.DRIFT])
@pytest.mark.parametrize("others", [[FOUND], [FOUND, at(100.2)], [FOUND, at(100.2), at(99.8)]])
def test_no_n_is_stated_beside_a_search_in_which_the_service_changed_or_failed(
    cause: Cause, others: list[Capacity]
) -> None:
    gone = Capacity(None, None, None, 0.0, ("the service answers errors only",), causes=(cause,))
    found = combined([*others, gone])
    assert (found.rate_rps, found.low_rps, found.high_rps) == (None, None, None)
    assert found.causes == (Cause.INCONSISTENT,)
    count = len(others) + 1
    assert found.words[0] == (
        f"1 of {count} searches found no interval: the service answers errors only"
    )


@pytest.mark.parametrize(("misfits", "is_stated"), [(1, True), (2, False), (3, False)])
def test_no_n_is_stated_if_as_many_searches_fit_no_capacity_as_found_one(
    misfits: int, *, is_stated: bool
) -> None:
    words = ("these trials do not fit one capacity",)
    misfit = Capacity(None, None, None, 0.0, words, causes=(Cause.INCONSISTENT,))
    found = combined([FOUND, at(100.2), *[misfit] * misfits])
    assert (found.rate_rps is not None) == is_stated
