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
