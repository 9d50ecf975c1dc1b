"""Users of a lab's directory."""

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.contexts.existing import directory_users


def entry(name):
    return {
        "OS_USER_DOMAIN_ID": "d-staff",
        "OS_USERNAME": name,
        "OS_PASSWORD": "x",
        "OS_PROJECT_NAME": "work",
    }


@pytest.fixture
def staff(fake):
    fake.add("domains", "Staff", id="d-staff")
    fake.add("projects", "work", id="p-work", domain_id="d-staff")
    for name in ("ann", "bob"):
        fake.add("users", name, id=f"u-{name}", domain_id="d-staff")
    return fake


def test_users_beyond_the_list_limit_are_found(staff, access):
    staff.page = 1
    found = directory_users(access, [entry("ann"), entry("bob")])
    assert [(user.id, user.project_id) for user in found] == [
        ("u-ann", "p-work"),
        ("u-bob", "p-work"),
    ]


@pytest.mark.parametrize(
    ("plural", "gone", "line"),
    [("users", "u-bob", "has no user 'bob'"), ("projects", "p-work", "has no project 'work'")],
)
def test_what_is_gone_is_named(staff, access, plural, gone, line):
    del staff.things[plural][gone]
    with pytest.raises(EnvironmentUnusable, match=f"{line}, which the lab was started with"):
        directory_users(access, [entry("ann"), entry("bob")])
