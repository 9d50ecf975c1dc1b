"""What a limit is for, on simulated services: told by a trial with half of the users."""

import pytest
from simulator.service import Law, Limiter, Service, WindowLimiter
from simulator.simulator import Simulator

from loadstone.analysis.model import Trial
from loadstone.search.model import Capacity
from loadstone.search.per_user import is_of_fewer_users
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES


def found(
    limiter: Limiter | WindowLimiter, users: int | None
) -> tuple[Capacity, tuple[Trial, ...]]:
    service = Service(workers=2, capacity_rps=400.0, limiter=limiter, refuses_with="status")
    settings = SearchSettings(budget_s=60.0, users=users)
    return search(STRATEGIES["meter"](settings), Simulator(service, 1).measure)


@pytest.mark.parametrize("users", [2, 3, 10, 20])
def test_a_limit_for_each_user_is_named_with_the_number_of_users(users: int) -> None:
    capacity, trials = found(Limiter(5.0 * users, users=users), users)
    assert capacity.rate_rps == pytest.approx(5.0 * users, rel=0.03)
    words = capacity.words[0]
    limit = float(words.removeprefix("the limit is ").partition("/s for each user")[0])
    assert limit == pytest.approx(5.0, rel=0.03)
    assert f"N holds for {users} users" in words
    assert is_of_fewer_users(trials[-1])
    assert trials[-1].purpose.startswith(f"half the users: {users // 2} of {users}")


@pytest.mark.parametrize(
    "limiter",
    [
        Limiter(50.0),
        WindowLimiter(30.0, 1.0, Law.COUNTING),
        WindowLimiter(30.0, 2.0, Law.FIXED),
        WindowLimiter(30.0, 1.0, Law.SLIDING),
    ],
)
def test_a_limit_for_all_users_is_not_taken_for_one_of_each(
    limiter: Limiter | WindowLimiter,
) -> None:
    capacity, _ = found(limiter, 10)
    assert capacity.rate_rps == pytest.approx(limiter.rate_rps, rel=0.03)
    assert capacity.words[0].startswith("the limit is not for each user: with 5 of the 10 users")


def test_a_limit_of_a_single_user_is_found_and_may_be_that_of_each() -> None:
    capacity, trials = found(Limiter(5.0), 1)
    assert capacity.rate_rps == pytest.approx(5.0, rel=0.03)
    assert "may be for each user" in capacity.words[0]
    assert "--users 20" in capacity.words[0]
    assert not any(is_of_fewer_users(trial) for trial in trials)


def test_a_low_limit_is_never_said_to_refuse_at_every_rate() -> None:
    for rate_rps in (1.0, 2.0, 5.0, 8.0):
        capacity, _ = found(Limiter(rate_rps), 1)
        assert not any("every rate" in words for words in capacity.words)
        assert capacity.low_rps is None or capacity.low_rps <= 1.03 * rate_rps
