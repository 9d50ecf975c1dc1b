"""Images and flavors of the servers that a run boots before its load."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.contexts.servers import _Compute

FLAVORS = [
    {"id": "f-1", "name": "m1.tiny"},
    {"id": "f-2", "name": "m1.tiny2"},
    {"id": "f-3", "name": "big (4 cores"},
    {"id": "f-4", "name": None},
]


class FakeIdentity:
    """Answers every request with the flavors."""

    access = SimpleNamespace(service_url=lambda _: "http://compute")

    def call(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(ok=True, json=lambda: {"flavors": FLAVORS})


def found(reference: dict[str, Any]) -> str:
    compute = _Compute(cast("Any", FakeIdentity()))
    return compute.find_id("compute", "/flavors", reference, cast("Any", None))


@pytest.mark.parametrize(
    ("reference", "chosen"),
    [
        ({"id": "x", "name": "m1.tiny"}, "x"),
        ({"id": None, "name": "m1.tiny"}, "f-1"),
        ({"regex": "^m1.tiny$"}, "f-1"),
        ({"name": "2$"}, "f-2"),
        ({"name": "big (4 cores"}, "f-3"),
    ],
)
def test_a_flavor_is_chosen_by_id_name_or_pattern(reference: dict[str, Any], chosen: str) -> None:
    assert found(reference) == chosen


@pytest.mark.parametrize("name", ["m2", "m1 ("])
def test_a_flavor_that_there_is_not_is_named(name: str) -> None:
    with pytest.raises(EnvironmentUnusable, match=r"^servers: no flavor is"):
        found({"name": name})


@pytest.mark.parametrize("reference", [{"name": "m1"}, {"regex": "^m1"}])
def test_a_pattern_that_several_flavors_have_is_refused(reference: dict[str, Any]) -> None:
    words = r"^servers: more than one flavor is .*: f-1, f-2$"
    with pytest.raises(EnvironmentUnusable, match=words):
        found(reference)
