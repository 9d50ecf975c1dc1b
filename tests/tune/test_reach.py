"""Every setting of the built-in space reaches the server that it names, in the advised form."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from loadstone.lab.keystone import conf, settings
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.compose import parts
from loadstone.lab.keystone.service import Keystone
from loadstone.lab.parts.haproxy import Haproxy
from loadstone.lab.parts.nginx import Nginx
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.server import Server
from loadstone.lab.parts.uwsgi import Uwsgi
from loadstone.lab.ports import HOST, Ports
from loadstone.lab.programs import Program
from loadstone.tune.advice import HAPROXY, KEYSTONE, LAB, MEMCACHED, ConfigLine, lines_of
from loadstone.tune.space import Pairs, find

BASES: tuple[Pairs, ...] = (
    (),
    (("database", "mariadb"),),
    (("database", "postgres"),),
    (("nodes", "2"),),
    (("nodes", "2"), ("tls", "on")),
    (("cache", "memcached"),),
    (("cache", "memcached-pool"),),
    (("web", "gunicorn"),),
    (("web", "granian"),),
)
CONFIGURED = (Uwsgi, Haproxy)  # parts whose `prepare` only writes a configuration


def levels() -> Iterator[tuple[Pairs, str, str]]:
    """Each level of the space on each base where its condition holds."""
    for base in BASES:
        default = settings.read(base).pairs()
        space = find("lab", default, cpus=4)
        for one in (*space.settings, *space.trades):
            for level in one.levels if one.applies(dict(default)) else ():
                if space.is_possible(((one.name, level),)):
                    yield base, one.name, level


class OnePort(Ports):
    """Reserves nothing: no part is started."""

    def allocate(self, purpose: str, requested: int | None = None, host: str = HOST) -> int:  # noqa: ARG002
        return 1


class Started(Exception):
    """A server was started, with these arguments."""


def rendered(part: Part, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what configures a part: its file, else the arguments of its process."""
    if isinstance(part, Keystone):
        variables = part.application().variables
        return conf.render(part._options()) + "".join(f"{n}={v}\n" for n, v in variables)
    if isinstance(part, CONFIGURED):
        part.prepare(lambda _: None)
        return part.conf.read_text()

    def run(_: Server, arguments: tuple[str, ...], *__: object) -> None:
        raise Started("\n".join(arguments))

    monkeypatch.setattr(Server, "run", run)
    if isinstance(part, Nginx):
        return ""  # it has no setting of the space
    try:
        part.start()
    except Started as started:
        return str(started)
    return ""


def configurations(
    base: Pairs, change: tuple[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[type[Part], str]:
    (folder / "run").mkdir(exist_ok=True)
    chosen = settings.read([*base, change])
    blueprint = Blueprint(folder, chosen, OnePort({}), 5000, *["x"] * 4)
    return {
        type(part): rendered(part, monkeypatch)
        for part in parts(blueprint)
        if isinstance(part, Keystone | Server) and part.name != "memcached"
    }


def normal(text: str) -> str:
    """Return a line without the differences between a file and an option: `--a-b=1`, `a_b = 1`."""
    return re.sub(r"[\s=]+", "=", text.strip().removeprefix("--")).replace("-", "_")


def is_in(line: ConfigLine, text: str) -> bool:
    if line.file == HAPROXY and "maxconn" in line.text:
        return line.text.rpartition("check ")[2] in text
    wanted = normal(line.text.replace(MEMCACHED, ""))
    if line.section and line.file == KEYSTONE:
        text = text.split(f"[{line.section}]\n", 1)[-1].split("\n[", maxsplit=1)[0]
    words = [normal(one) for one in (*text.splitlines(), *_pairs(text))]
    return any(one.startswith(wanted) if MEMCACHED in line.text else one == wanted for one in words)


def _pairs(text: str) -> Iterator[str]:
    """Yield each two lines that follow each other: an option and its value are two arguments."""
    yield from (f"{one} {other}" for one, other in pairwise(text.splitlines()))


@pytest.mark.parametrize(("base", "name", "level"), [*levels()], ids=str)
def test_a_setting_reaches_the_server_as_it_is_advised(
    base: Pairs, name: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Program, "path", lambda one: one.name)  # none need be installed
    # The machine may allow no queue as long as that.
    monkeypatch.setattr("loadstone.lab.parts.uwsgi.backlog", lambda wanted: wanted)
    found = configurations(base, (name, level), tmp_path, monkeypatch)
    values = dict(settings.read([*base, (name, level)]).pairs())
    lines = lines_of(name, level, values)
    assert lines
    if name == "web":
        assert any(kind.__name__.lower() in level.replace("-", "") for kind in found)
        return
    if name == "tls":
        assert " ssl crt " not in found[Haproxy]
        return
    if name == "gc-threshold":
        assert f"LOADSTONE_GC_THRESHOLD={level}\n" in found[Keystone]
        return
    for line in lines:
        assert line.file != LAB, f"{name} has no line of a configuration file"
        assert any(is_in(line, text) for text in found.values()), (line, found)
