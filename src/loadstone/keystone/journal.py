"""What a run made in a cloud, on disk before it is made, so that a killed run can be cleaned up.

One JSON object a line: where, then for each thing `create` (before) and `created` or `removed`, and
`ready` for a user that can be loaded as. It holds names and ids, no secret.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.things import Kind, Thing
from loadstone.lab import locks
from loadstone.target import Access


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a user was made ready for, and on which day it has logged in."""

    grants: str
    day: str


@dataclass(frozen=True, slots=True)
class Record:
    """What a journal says."""

    run_id: str
    chosen: str  # how the cloud was chosen: "--lab demo", "--cloud prod", "OS_*"
    identity_url: str
    remaining: tuple[Thing, ...]  # made or about to be made, and not removed
    ready: Mapping[str, Readiness] = field(default_factory=dict)  # by the user's id

    @property
    def mend(self) -> str:
        """The command that removes what remains."""
        target = f" {self.chosen}" if self.chosen.startswith("--") else ""
        return f"loadstone results clean {self.run_id}{target}"


@contextmanager
def held(path: Path, run_id: str) -> Iterator[None]:
    """Keep all others from what the journal names, for as long as this process works with it."""
    busy = f"another loadstone is at work with what run {run_id} made; wait for it, or end it"
    with locks.held(path.with_suffix(".lock"), busy=busy):
        yield


class Unwritable(EnvironmentUnusable):
    """The journal cannot go on, so nothing more may be made."""


class Journal:
    """An append-only file that reaches the disk line by line; safe to use from many threads."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._lock = threading.Lock()
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            # A kill cut the last line off; the next one must not go on in it.
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    @classmethod
    def start(cls, path: Path, run_id: str, access: Access) -> Self:
        """Begin (or go on with) the journal of a run against this cloud."""
        journal = cls(path, run_id)
        whither = {"chosen": access.cloud.chosen, "identity_url": access.identity_url}
        journal._append("target", {"run_id": run_id, **whither})
        return journal

    def create(self, kind: Kind, name: str, domain_id: str | None = None) -> None:
        """Say that this is about to be made, and where, if not in the run's own domain."""
        self._append("create", {"kind": kind, "name": name, "domain_id": domain_id})

    def created(self, thing: Thing) -> None:
        """Say that this was made, and its id."""
        self._append("created", _words(thing))

    def ready(self, user_id: str, how: Readiness) -> None:
        """Say that load can be made as this user."""
        # Where this line is lost, the user is only made ready once more: no need to wait for the
        # disk.
        said = {"id": user_id, "grants": how.grants, "day": how.day}
        self._append("ready", said, waits=False)

    def removed(self, thing: Thing) -> None:
        """Say that this is gone."""
        self._append("removed", _words(thing))

    def _append(self, event: str, said: Mapping[str, str | None], *, waits: bool = True) -> None:
        line = json.dumps({"event": event, **said}) + "\n"
        try:
            with self._lock, self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                if waits:
                    os.fsync(file.fileno())
        except OSError as error:
            raise Unwritable(f"{self.path}: cannot be written ({error.strerror})") from error


def read(path: Path) -> Record | None:
    """Read a journal; None when there is none, or nothing in it yet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    target: dict[str, str] | None = None
    remaining: dict[tuple[str, ...], Thing] = {}
    ready: dict[str, Readiness] = {}
    for line in lines:
        entry = _parse(line)
        match entry.get("event"):
            case "target":
                target = entry
            case "create" | "created":
                remaining[_key(entry)] = _thing(entry)
            case "removed":
                remaining.pop(_key(entry), None)
            case "ready":
                ready[entry["id"]] = Readiness(entry["grants"], entry["day"])
    if target is None:
        return None
    named = (target["run_id"], target["chosen"], target["identity_url"])
    return Record(*named, tuple(remaining.values()), ready)


def _words(thing: Thing) -> dict[str, str | None]:
    return {
        "kind": thing.kind,
        "name": thing.name,
        "id": thing.id,
        "domain_id": thing.domain_id,
    }


def _thing(entry: dict[str, str]) -> Thing:
    return Thing(Kind(entry["kind"]), entry["name"], entry.get("id"), entry.get("domain_id"))


def _key(entry: dict[str, str]) -> tuple[str, ...]:
    return entry["kind"], entry["name"], entry.get("domain_id") or ""


def _parse(line: str) -> dict[str, str]:
    try:
        entry = json.loads(line)
    except ValueError:
        # Cut off by a kill: what it would have said was not begun yet.
        return {}
    return entry if isinstance(entry, dict) else {}
