"""Users that an interrupted run had made are gone on with."""

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.contexts.users import UsersSettings, make_users, users
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal

RUN = "20261121-0931-ab12cd"
NAME = f"loadstone-{RUN}"
SIX = UsersSettings(tenants=2, users_per_tenant=3)


@pytest.fixture
def before(fake, access, journal):
    """Six users whose run was killed; the calls are counted from here."""
    made = make_users(Identity(access), SIX, Journal.start(journal, RUN, access), print)
    fake.calls.clear()
    return made


def calls(fake, method, path):
    return fake.calls[method, f"/v3{path}"]


def test_users_that_were_ready_cost_one_login_in_all(fake, access, journal, said, before):
    with users(access, RUN, SIX, journal, said.append) as made:
        assert made == before
        assert (calls(fake, "POST", "/users"), calls(fake, "PATCH", "/users/ID")) == (0, 0)
        assert calls(fake, "POST", "/auth/tokens") == 1
        assert "  6 of them are there already" in said
    assert not any(fake.things.values())


def test_only_those_that_lack_are_made(fake, access, journal, said, before):
    gone = before[2]
    del fake.things["users"][gone.id]  # by somebody else
    more = UsersSettings(tenants=2, users_per_tenant=5)
    with users(access, RUN, more, journal, said.append) as made:
        assert [user.name for user in made] == [f"{NAME}-u{n}" for n in range(1, 11)]
        assert [user in before for user in made] == [True] * 2 + [False] + [True] * 3 + [False] * 4
        assert calls(fake, "POST", "/users") == 5
        for user in made:
            Identity(access).log_in(user)
    assert not any(fake.things.values())


def test_whose_password_is_another_gets_one_that_is_known(fake, access, journal, said, before):
    for user in before:
        fake.things["users"][user.id]["password"] = "another"
    with users(access, RUN, SIX, journal, said.append) as made:
        assert calls(fake, "PATCH", "/users/ID") == 6
        for user in made:
            Identity(access).log_in(user)


def test_who_needs_further_roles_gets_them(fake, access, journal, said, before):
    wanted = UsersSettings(tenants=2, users_per_tenant=3, roles=("reader",))
    with users(access, RUN, wanted, journal, said.append) as made:
        assert {(user.project_id, user.id, "r-reader") for user in made} < fake.grants
    assert calls(fake, "POST", "/users") == 0
    assert [user.id for user in made] == [user.id for user in before]


def test_two_at_once_do_not_take_the_same_users(access, journal, said, before):
    with (
        users(access, RUN, SIX, journal, said.append) as made,
        pytest.raises(EnvironmentUnusable, match=f"at work with what run {RUN} made"),
        users(access, RUN, SIX, journal, said.append),
    ):
        pass
    assert made == before
