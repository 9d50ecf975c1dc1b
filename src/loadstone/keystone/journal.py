"""What a run made in a cloud, on disk before it is made, so that a killed run can be cleaned up.

One JSON object a line: where, then for each thing `create` (before) and `created` or `removed`.
It holds names and ids, no secret.
"""

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.things import Kind, Thing
from loadstone.target import Access


@dataclass(frozen=True, slots=True)
class Record:
    """What a journal says."""

    run_id: str
    chosen: str  # how the cloud was chosen: "--lab demo", "--cloud prod", "OS_*"
    identity_url: str
    remaining: tuple[Thing, ...]  # made or about to be made, and not removed

    @property
    def mend(self) -> str:
        """The command that removes what remains."""
        target = f" {self.chosen}" if self.chosen.startswith("--") else ""
        return f"loadstone results clean {self.run_id}{target}"


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
        journal._append(
            "target", run_id=run_id, chosen=access.cloud.chosen, identity_url=access.identity_url
        )
        return journal

    def create(self, kind: Kind, name: str, domain_id: str | None = None) -> None:
        """Say that this is about to be made, and where, if not in the run's own domain."""
        self._append("create", kind=kind, name=name, domain_id=domain_id)

    def created(self, thing: Thing) -> None:
        """Say that this was made, and its id."""
        self._append("created", **_words(thing))

    def removed(self, thing: Thing) -> None:
        """Say that this is gone."""
        self._append("removed", **_words(thing))

    def _append(self, event: str, **fields: str | None) -> None:
        line = json.dumps({"event": event, **fields}) + "\n"
        try:
            with self._lock, self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
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
    for line in lines:
        entry = _parse(line)
        match entry.get("event"):
            case "target":
                target = entry
            case "create" | "created":
                remaining[_key(entry)] = _thing(entry)
            case "removed":
                remaining.pop(_key(entry), None)
    if target is None:
        return None
    return Record(
        target["run_id"], target["chosen"], target["identity_url"], tuple(remaining.values())
    )


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
