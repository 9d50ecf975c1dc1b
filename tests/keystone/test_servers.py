"""The context `servers`: which image and flavor a reference means."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from loadstone.keystone.contexts.model import ExistingServers
from loadstone.keystone.contexts.servers import boot_servers
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import Token, User

if TYPE_CHECKING:
    from loadstone.keystone.identity import Identity

USER = User("u", "user", "pw", "p", "project", "d", "domain")
NAMED = ("cirros (0.6", "cirros-0.5", "zz")  # images


class Cloud:
    """The calls of a compute cloud that boots at once."""

    def __init__(self) -> None:
        self.booted: list[str] = []
        self.access = SimpleNamespace(service_url=lambda service: f"http://127.0.0.1:9/{service}")

    def log_in(self, _user: User) -> Token:
        return Token("t", 0.0)

    def call(self, url: str, method: str, body: Any = None, **_: Any) -> Any:
        answer: dict[str, Any] = {"server": {"id": "s", "status": "ACTIVE"}}
        if url.endswith("images"):
            answer = {"images": [{"id": f"id of {name}", "name": name} for name in NAMED]}
        if method == "POST":
            self.booted.append(body["server"]["imageRef"])
        return SimpleNamespace(ok=True, json=lambda: answer)


def booted(image: dict[str, Any], folder: Path) -> str:
    cloud, context = Cloud(), ExistingServers(image, {"id": "small"}, per_tenant=1)
    journal = Journal(folder / "created.jsonl", "20261121-0931-ab12cd")
    boot_servers(cast("Identity", cloud), context, (USER,), {}, journal, lambda _: None)
    return cloud.booted[0]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ({"name": "cirros (0.6"}, "cirros (0.6"),
        ({"name": "^cirros-"}, "cirros-0.5"),
        ({"regex": "^cirros"}, "cirros-0.5"),
    ],
)
def test_a_reference_is_a_name_or_a_pattern(
    tmp_path: Path, image: dict[str, Any], name: str
) -> None:
    assert booted(image, tmp_path) == f"id of {name}"
