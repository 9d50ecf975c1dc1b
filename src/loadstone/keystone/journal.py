"""What a run made in a cloud, on disk before it is made, so that a killed run can be cleaned up.

One JSON object a line: where, then for each thing `create` (before) and `created` or `removed`, and
`ready` for a user that can be loaded as. It holds names and ids, no secret. A line is whole or not
there: what a full disk cuts short is taken back, what a kill cuts short is no line yet.
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
from loadstone.keystone.things import Kind, Thing, domain_name
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
    identity_url: str  # nothing: the line that says it is damaged
    remaining: tuple[Thing, ...]  # made or about to be made, and not removed
    ready: Mapping[str, Readiness] = field(default_factory=dict)  # by the user's id
    unread: tuple[str, ...] = ()  # lines that are damaged, and how to look for what they named

    @property
    def is_done(self) -> bool:
        """Whether nothing is left, for sure."""
        return not self.remaining and not self.unread

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
        with _writing(path):
            if path.exists() and not (said := path.read_bytes()).endswith(b"\n"):
                # A kill cut the last line short, before anything was made of what it says.
                os.truncate(path, said.rfind(b"\n") + 1)

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
        line = json.dumps({"event": event, **said}).encode() + b"\n"
        with _writing(self.path), self._lock, self.path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                while line:
                    line = line[file.write(line) :]
                if waits:
                    os.fsync(file.fileno())
            except OSError:
                # On a full disk a part may stand there, and the next line would go on in it.
                file.truncate(before)
                raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(f"{path}: cannot be written ({error.strerror})") from error


def read(path: Path) -> Record | None:
    """Read a journal; None when there is none, or nothing in it yet."""
    try:
        # What follows the last newline is cut short: what it would have said was not begun yet.
        *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentUnusable(f"{path}: cannot be read ({error.strerror})") from error
    said = _Said()
    unread = [number for number, line in enumerate(lines, start=1) if not said.takes(line)]
    if said.target is None and not unread:
        return None
    run_id, chosen, identity_url = said.target or (
        path.parent.name,
        "",
        "",
    )  # the folder is the run's
    damaged = (_damage(path, number, run_id) for number in unread)
    things = tuple(said.remaining.values())
    return Record(run_id, chosen, identity_url, things, said.ready, tuple(damaged))


def _damage(path: Path, number: int, run_id: str) -> str:
    return (
        f"{path}:{number}: cannot be read; what it named may be left: look in all domains for "
        f"names that begin with {domain_name(run_id)}"
    )


@dataclass(slots=True)
class _Said:
    """What the lines so far said."""

    target: tuple[str, str, str] | None = None
    remaining: dict[tuple[str, ...], Thing] = field(default_factory=dict)
    ready: dict[str, Readiness] = field(default_factory=dict)

    def takes(self, line: str) -> bool:
        """Take in a line; False: it is none."""
        try:
            self._take(json.loads(line))
        except (ValueError, KeyError, TypeError):
            return False
        return True

    def _take(self, entry: dict[str, str]) -> None:
        match entry["event"]:
            case "target":
                self.target = entry["run_id"], entry["chosen"], entry["identity_url"]
            case "create" | "created":
                self.remaining[_key(entry)] = _thing(entry)
            case "removed":
                self.remaining.pop(_key(entry), None)
            case "ready":
                self.ready[entry["id"]] = Readiness(entry["grants"], entry["day"])
            case _:
                raise ValueError(entry["event"])


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
