"""Calls of the identity API."""

from types import SimpleNamespace

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import Resource, ResourceKind


@pytest.mark.parametrize(
    ("names", "available"),
    [
        ((), "no service with a name"),
        (("", ""), "no service with a name"),
        (("b", "", "a"), "a, b"),
    ],
)
def test_an_unknown_service_is_refused_with_the_names_there_are(monkeypatch, names, available):
    services = tuple(Resource(ResourceKind.SERVICE, name, "1") for name in names)
    monkeypatch.setattr(Identity, "find", lambda *_: services)
    identity = Identity(SimpleNamespace(identity_url="http://127.0.0.1:5000/v3"))
    with pytest.raises(EnvironmentUnusable) as refused:
        identity.service_id("x")
    assert str(refused.value) == (
        f"http://127.0.0.1:5000/v3: has no service 'x'; it has {available}"
    )


def test_errors_that_come_late_are_not_waited_for_again_and_again(monkeypatch):
    """As of a service whose database hangs, until its own time-out."""
    sent = []
    answer = SimpleNamespace(status_code=500, headers={}, raw=None)
    monkeypatch.setattr(Identity, "_send", lambda *_: sent.append(1) or answer)
    monkeypatch.setattr("loadstone.keystone.identity._PATIENCE_S", -1.0)
    assert Identity(SimpleNamespace())._call("/users", "POST") == (answer, True)
    assert len(sent) == 1
