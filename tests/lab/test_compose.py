"""What the settings of a deployment become in its parts, none of which is started."""

import configparser
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.compose import Blueprint, parts
from loadstone.lab.parts.part import Part
from loadstone.lab.ports import HOST, Ports


class OnePort(Ports):
    """Reserves nothing."""

    def allocate(self, purpose: str, requested: int | None = None, host: str = HOST) -> int:  # noqa: ARG002
        return 1


def composed(folder: Path, *words: str) -> dict[str, Part]:
    chosen = settings.read([settings.split(word) for word in words])
    url = "http://127.0.0.1:5000/v3"
    blueprint = Blueprint(folder, chosen, OnePort({}), 5000, url, *["x"] * 4)
    return {part.name: part for part in parts(blueprint)}


def test_options_of_ldap_reach_the_domain_of_the_directory(tmp_path: Path) -> None:
    words = ("identity=ldap", "conf.ldap.pool_size=3", "conf.ldap.use_pool=false")
    composed(tmp_path, *words)["directory"].prepare(lambda _: None)
    found = configparser.ConfigParser(interpolation=None)
    found.read(state.secret_folder(tmp_path) / "domains" / "keystone.directory.conf")
    assert found["ldap"]["pool_size"] == "3"
    assert found["ldap"]["use_pool"] == "false"
    assert found["ldap"]["use_auth_pool"] == "true"
