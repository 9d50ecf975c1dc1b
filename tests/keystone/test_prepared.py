"""The requests of a load by some of the users."""

from loadstone.keystone.prepared import PreparedScenario
from loadstone.keystone.resources import Token, User
from loadstone.keystone.scenarios import SCENARIOS


def user(number: int) -> User:
    return User(f"id{number}", f"u{number}", "secret", "p1", "project", "d1", "domain")


def test_half_of_the_users_send_with_their_own_tokens() -> None:
    users = tuple(user(number % 4) for number in range(8))  # each sends twice
    tokens = tuple(Token(f"token of {one.name}", 0.0) for one in users)
    prepared = PreparedScenario(SCENARIOS["validate"], users, {"token": tokens})
    half = prepared.of_fewer_users(0.5)
    assert {one.name for one in half.users} == {"u0", "u1"}
    assert len(half.users) == 4
    for one, token in zip(half.users, half.tokens["token"], strict=True):
        assert token.value == f"token of {one.name}"
    assert len(prepared.of_fewer_users(0.01).users) == 2  # one user at least
