"""What runs on a lab host, in this process."""

import time

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import deployment, lab_host
from loadstone.lab.deployment import Deployment
from loadstone.lab.lab_host import LabHost

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


def test_one_client_at_a_time_measures_on_a_lab_host(
    exclusive_keystone: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_host, "LEASE_S", 2.0)
    first = LabHost("first", "others")
    found = first.measure(exclusive_keystone.name, anyway=False)
    assert found.url == exclusive_keystone.url
    readings, missing = first.read()
    assert {"machine", "keystone"} <= {one.source.partition("/")[0] for one in readings}
    assert "generator" not in {one.source.partition("/")[0] for one in readings}
    assert not missing
    assert first.failure() is None
    with pytest.raises(EnvironmentUnusable, match=r"another client is at work there \(first\)"):
        LabHost("second", "others")
    LabHost("who only looks", "none").release()
    until_s = time.monotonic() + 60
    while first.is_held:  # nothing is heard of the first
        assert time.monotonic() < until_s
        time.sleep(0.1)
    second = LabHost("second", "others")
    try:
        second.measure(exclusive_keystone.name, anyway=True)
    finally:
        second.release()
        # Its own thread would see the longer lease again that the end of this test restores.
        first.release()


def test_a_start_that_is_under_way_when_its_client_goes_is_ended(
    lab_home: None,  # noqa: ARG001
    name: str,
) -> None:
    host = LabHost("client", "others")
    pairs = (("workers", "1"), ("hash-rounds", "4"))
    host.start(name, pairs, owned=True, purged=True)
    host.release()
    assert name not in [one.name for one in deployment.every()]
