"""The context `servers`: which image and flavor a reference means."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from loadstone.errors import EnvironmentUnusable
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

    def __init__(self, compute: str = "http://127.0.0.1:9/compute") -> None:
        self.booted: list[str] = []
        self.networks: list[Any] = []
        self.urls: list[str] = []
        urls = {"compute": compute, "image": "http://127.0.0.1:9/image"}
        self.access = SimpleNamespace(service_url=urls.get, lacks="no {}".format)

    def log_in(self, _user: User) -> Token:
        return Token("t", 0.0)

    def call(self, url: str, method: str, body: Any = None, **_: Any) -> Any:
        self.urls.append(url)
        answer: dict[str, Any] = {"server": {"id": "s", "status": "ACTIVE"}}
        if url.endswith("images"):
            answer = {"images": [{"id": f"id of {name}", "name": name} for name in NAMED]}
        if method == "POST":
            self.booted.append(body["server"]["imageRef"])
            self.networks.append(body["server"].get("networks"))
        return SimpleNamespace(ok=True, json=lambda: answer)


def boot(cloud: Cloud, image: dict[str, Any], folder: Path) -> None:
    context = ExistingServers(image, {"id": "small"}, per_tenant=1)
    journal = Journal(folder / "created.jsonl", "20261121-0931-ab12cd")
    boot_servers(cast("Identity", cloud), context, (USER,), {}, journal, lambda _: None)


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
    cloud = Cloud()
    boot(cloud, image, tmp_path)
    assert cloud.booted == [f"id of {name}"]


@pytest.mark.parametrize(
    ("picks", "given", "asked"),
    [
        (False, (), None),
        (True, (), [{"uuid": "own-1"}]),
        (True, ("n-1", "n-2"), [{"uuid": "n-1"}, {"uuid": "n-2"}]),
    ],
)
def test_servers_get_the_networks_that_are_given_or_the_first_of_their_project(
    tmp_path: Path, picks: bool, given: tuple[str, ...], asked: list[dict[str, str]] | None
) -> None:
    cloud, made = Cloud(), {USER.project_id: ("own-1", "own-2")}
    context = ExistingServers({"id": "cirros"}, {"id": "small"}, 1, picks, given)
    journal = Journal(tmp_path / "created.jsonl", "20261121-0931-ab12cd")
    boot_servers(cast("Identity", cloud), context, (USER,), made, journal, lambda _: None)
    assert cloud.networks == [asked]


def test_servers_that_no_service_can_boot_are_not_announced(tmp_path: Path) -> None:
    """The clean-up would look for them in vain."""
    with pytest.raises(EnvironmentUnusable, match="needs a service of type compute"):
        boot(Cloud(""), {"id": "cirros"}, tmp_path)
    assert not (tmp_path / "created.jsonl").exists()


@pytest.mark.parametrize("path", ["", "/v2.1/", "/v2.1/project-of-the-administrator"])
def test_servers_are_booted_in_the_project_of_their_user(tmp_path: Path, path: str) -> None:
    """The URL of the catalog may lack the version, and may have the administrator's project."""
    cloud = Cloud(f"http://127.0.0.1:9{path}")
    boot(cloud, {"id": "cirros"}, tmp_path)
    servers = "http://127.0.0.1:9/v2.1/servers"
    assert cloud.urls == [servers, f"{servers}/s"]
