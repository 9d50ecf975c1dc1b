"""What a search returns when its load time runs out."""

import contextlib
from collections.abc import Callable

import pytest

from loadstone.analysis.model import Trial
from loadstone.errors import LoadTimeUsed
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Capacity, Strategy, TrialRequest
from loadstone.search.profiling import with_profile
from loadstone.search.run import search

FOUND = Capacity(100.0, 95.0, 105.0, 0.95)


def no_time(_request: TrialRequest) -> Trial:
    raise LoadTimeUsed("the load time is used up; raise --budget, or ask for less")


def found_at_the_end() -> Strategy:
    """Ask for a trial, and know N all the same."""
    with contextlib.suppress(LoadTimeUsed):
        yield TrialRequest(OpenLoad(1.0, 1.0), "one more")
    return FOUND


def not_found() -> Strategy:
    yield TrialRequest(OpenLoad(1.0, 1.0), "the first")
    return FOUND


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: with_profile(500.0, one)])
def test_what_was_found_is_kept(wrap: Callable[[Strategy], Strategy]) -> None:
    assert search(wrap(found_at_the_end()), no_time) == (FOUND, ())


def test_without_anything_the_reason_is_said() -> None:
    capacity, _ = search(not_found(), no_time)
    assert capacity.rate_rps is None
    assert capacity.words == ("the load time is used up; raise --budget, or ask for less",)
