"""`fleet.yaml`: hosts that Loadstone reaches by ssh."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from loadstone.errors import InvalidInput
from loadstone.system import yaml_file

FIELDS = {"address", "hosts", "ssh_config", "wheels"}
HOST_FIELDS = {"name", "python", "role", "workers"}
# Roles of workers, as Dask resources: send load, start deployments, or read the host's monitors.
LOAD, LAB, WATCH = "load", "lab", "watch"
ROLES = (LOAD, LAB, WATCH)
MOST_WORKERS = 64


@dataclass(frozen=True, slots=True)
class SshHost:
    """A host that ssh can reach."""

    name: str  # [USER@]HOST
    workers: int = 1
    python: str | None = None  # a Python with Loadstone; None: Loadstone is installed
    role: str = LOAD


@dataclass(frozen=True, slots=True)
class SshFleet:
    """Hosts on which Loadstone starts workers for one run."""

    path: Path
    address: str  # of this machine, as the hosts reach it
    hosts: tuple[SshHost, ...]
    ssh_config: Path | None = None  # in place of ~/.ssh/config
    wheels: Path | None = None  # of the dependencies; None: they come from the package index

    def __str__(self) -> str:
        return str(self.path)


def read(path: Path) -> SshFleet:
    """Read the hosts of a file; InvalidInput says what is wrong and where."""
    file = yaml_file.read(path, "--fleet")
    tree = file.content
    if not isinstance(tree, dict):
        raise InvalidInput(f"{file.place()}: must have address and hosts")
    if unknown := sorted(map(str, tree.keys() - FIELDS)):
        known = ", ".join(sorted(FIELDS))
        raise InvalidInput(
            f"{file.place(unknown[0])}: no field {unknown[0]!r}; choose from {known}"
        )
    address, hosts = tree.get("address"), tree.get("hosts")
    if not isinstance(address, str) or not _is_word(address):
        raise InvalidInput(
            f"{file.place('address')}: address must be this machine's, as the hosts reach it, "
            f"not {address!r}"
        )
    if not isinstance(hosts, list) or not hosts:
        raise InvalidInput(f"{file.place('hosts')}: hosts must be a list of [USER@]HOST")
    return SshFleet(
        path,
        address,
        tuple(
            _host(partial(file.place, "hosts", index), f"host {index + 1}", one)
            for index, one in enumerate(hosts)
        ),
        _beside(path, file, "ssh_config"),
        _beside(path, file, "wheels"),
    )


def _host(place: yaml_file.Place, which: str, tree: Any) -> SshHost:
    fields = {"name": tree} if isinstance(tree, str) else tree
    if not isinstance(fields, dict) or set(fields) - HOST_FIELDS:
        raise InvalidInput(
            f"{place()}: {which}: write [USER@]HOST, or {{name: ..., workers: 2, python: ...}}"
        )
    name, workers, python = fields.get("name"), fields.get("workers", 1), fields.get("python")
    if not isinstance(name, str) or not _is_word(name):
        raise InvalidInput(f"{place('name')}: {which}: {name!r} is not the name of a host")
    if type(workers) is not int or not 1 <= workers <= MOST_WORKERS:
        raise InvalidInput(
            f"{place('workers')}: {which}: workers must be 1 to {MOST_WORKERS}, not {workers!r}"
        )
    if python is not None and not (isinstance(python, str) and python.startswith("/")):
        raise InvalidInput(
            f"{place('python')}: {which}: python must be the path of a program, not {python!r}"
        )
    role = fields.get("role", LOAD)
    if role not in ROLES:
        raise InvalidInput(
            f"{place('role')}: {which}: role must be one of {', '.join(ROLES)}, not {role!r}"
        )
    return SshHost(name, workers, python, role)


def _is_word(text: str) -> bool:
    """Return whether ssh reads this as a host, not as an option or several words."""
    return text != "" and text.isprintable() and " " not in text and not text.startswith("-")


def _beside(path: Path, file: yaml_file.YamlFile, name: str) -> Path | None:
    """Return a path of the file, relative to the file."""
    value = file.content.get(name)
    if value is None:
        return None
    found = path.parent / str(value)
    if not found.exists():
        raise InvalidInput(f"{file.place(name)}: {name}: {found} does not exist")
    return found
