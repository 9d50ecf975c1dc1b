"""Users that an interrupted run had made are gone on with."""

from dataclasses import replace

import pytest
from made_users import users

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.users import make_users
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal

RUN = "20261121-0931-ab12cd"
NAME = f"loadstone-{RUN}"
SIX = Users(tenants=2, users_per_tenant=3)


@pytest.fixture
def before(fake, access, journal):
    """Six users whose run was killed; the calls are counted from here."""
    made = make_users(Identity(access), SIX, (), Journal.start(journal, RUN, access), print)
    fake.calls.clear()
    return made


def calls(fake, method, path):
    return fake.calls[method, f"/v3{path}"]


def same_but_for_passwords(made, before):
    return [replace(user, password="") for user in made] == [
        replace(user, password="") for user in before
    ]


def test_users_that_were_ready_cost_one_new_password_each(fake, access, journal, said, before):
    with users(access, RUN, SIX, journal, said.append) as made:
        assert same_but_for_passwords(made, before)
        assert (calls(fake, "POST", "/users"), calls(fake, "PATCH", "/users/ID")) == (0, 6)
        assert calls(fake, "POST", "/auth/tokens") == 0
        assert "  6 of them are there already and get new passwords" in said
        for user in made:
            Identity(access).log_in(user)
    assert not any(fake.things.values())


def test_passwords_are_random_and_kept_nowhere(access, journal, said, before):
    with users(access, RUN, SIX, journal, said.append) as made:
        passwords = {user.password for user in (*before, *made)}
        assert len(passwords) == 12  # each user another, and others than the run before
        kept = b"".join(file.read_bytes() for file in journal.parent.rglob("*") if file.is_file())
        assert not any(password.encode() in kept for password in passwords)


def test_only_those_that_lack_are_made(fake, access, journal, said, before):
    gone = before[2]
    del fake.things["users"][gone.id]  # by somebody else
    more = Users(tenants=2, users_per_tenant=5)
    kept = {user.id for user in before}
    with users(access, RUN, more, journal, said.append) as made:
        assert [user.name for user in made] == [f"{NAME}-u{n}" for n in range(1, 11)]
        assert [u.id in kept for u in made] == [True] * 2 + [False] + [True] * 3 + [False] * 4
        assert calls(fake, "POST", "/users") == 5
        for user in made:
            Identity(access).log_in(user)
    assert not any(fake.things.values())


def test_who_needs_further_roles_gets_them(fake, access, journal, said, before):
    with users(access, RUN, SIX, journal, said.append, ("reader",)) as made:
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
    assert same_but_for_passwords(made, before)
