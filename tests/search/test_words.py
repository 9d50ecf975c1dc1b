"""What is said of N: nothing where there is none, and nothing beside the errors that hide it."""

from dataclasses import replace

import pytest
from simulator.families import draw
from simulator.service import Service
from simulator.simulator import Simulator

from loadstone.search.guard import ABOUT_N
from loadstone.search.model import Capacity
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES


def found(service: Service, seed: int, budget_s: float = 120.0) -> Capacity:
    capacity, _ = search(
        STRATEGIES["meter"](SearchSettings(budget_s=budget_s)), Simulator(service, seed).measure
    )
    return capacity


@pytest.mark.parametrize(
    "family",
    ["deterministic", "mix", "limiter", "step-back", "decline", "swing", "job", "errors", "heavy"],
)
def test_without_n_nothing_is_said_of_it(family: str) -> None:
    for index in range(4):
        capacity = found(draw(family, index), index)
        if capacity.rate_rps is None and not capacity.is_range:
            assert not any(words.startswith(ABOUT_N) for words in capacity.words), capacity


@pytest.mark.parametrize("index", range(4))
def test_n_without_the_errors_is_not_contradicted_by_rates_that_failed_by_them(index: int) -> None:
    words = found(draw("errors", index), index).words
    if any("without these errors, N is" in one for one in words):
        assert not any("no more than" in one or "was sustained" in one for one in words), words


@pytest.mark.parametrize("index", [1600001, 1600010])
def test_a_decline_that_was_taken_for_several_changes_is_said_to_be_one(index: int) -> None:
    capacity = found(draw("decline", index, 20.0, 180.0), index, 240.0)
    assert capacity.rate_rps is None
    assert "the capacity declines all the time" in capacity.words[0]


def test_a_service_that_declines_and_fails_at_any_rate_is_said_to_do_both() -> None:
    service = replace(draw("decline", 0), error_share=0.005)
    first, second, *_ = found(service, 0, 240.0).words
    assert first.startswith("errors that do not depend on the load")
    assert "the capacity declines all the time" in second
