"""What each side of a comparison in turns knows of the other side's processes."""

import pytest
from keystoneauth1.session import Session

from loadstone.cloud import Access, from_environment
from loadstone.compare.other_side import knowing_each_other
from loadstone.monitor.service import ServiceProcess
from loadstone.target.target import Target


@pytest.fixture
def access() -> Access:
    variables = {"USERNAME": "a", "PASSWORD": "x", "PROJECT_ID": "a", "USER_DOMAIN_ID": "a"}
    named = {f"OS_{name}": value for name, value in variables.items()}
    cloud = from_environment({"OS_AUTH_URL": "http://127.0.0.1:1/v3", **named})
    return Access(cloud, cloud.endpoint, Session())


def target(access: Access, *pids: int) -> Target:
    found = tuple(ServiceProcess(pid, "uwsgi") for pid in pids)
    return Target(access, members=lambda: found)


def test_each_side_knows_the_others_processes(access: Access) -> None:
    said: list[str] = []
    with knowing_each_other(target(access, 1, 2), target(access, 3), said.append) as (a, b):
        assert [one.pid for one in a.other_side() or ()] == [3]
        assert [one.pid for one in b.other_side() or ()] == [1, 2]
    assert not said


def test_costs_of_sides_that_share_a_process_are_not_compared(access: Access) -> None:
    said: list[str] = []
    with knowing_each_other(target(access, 1, 2), target(access, 2, 3), said.append) as sides:
        assert [one.members() for one in sides] == [None, None]
    assert "cannot be told apart" in said[0]
