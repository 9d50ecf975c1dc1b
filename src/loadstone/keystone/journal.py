"""Records on disk what a run creates in a cloud, so that a killed run can be cleaned up.

One JSON object per line: the cloud, then for each resource `create` (before) and `created` or
`removed`, and `ready` for a user that load can use. It contains names and ids, no secrets.
Incomplete lines are removed (full disk) or ignored (kill).
"""

import errno
import json
import os
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Self

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.resources import Resource, ResourceKind, domain_name
from loadstone.system import files, locks

JOURNAL = "created.jsonl"  # in the folder of a run


@dataclass(frozen=True, slots=True)
class UserReadiness:
    """The grants of a user, and the day of its last login."""

    grants: str
    day: str


@dataclass(frozen=True, slots=True)
class JournalContents:
    """The contents of a journal."""

    run_id: str
    chosen: str  # how the cloud was chosen: "--lab demo", "--cloud prod", "OS_*"
    identity_url: str  # empty if that line is damaged
    remaining: tuple[Resource, ...]  # created or about to be created, and not removed
    ready: Mapping[str, UserReadiness] = field(default_factory=dict)  # by user id
    unread: tuple[str, ...] = ()  # numbers of damaged lines, and how to look for their resources
    # Of the services beside Keystone; empty if none was chosen, None if the journal does not say.
    region: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether certainly nothing is left."""
        return not self.remaining and not self.unread

    @property
    def cleanup_command(self) -> str:
        """The command that removes what remains."""
        option, _, name = self.chosen.partition(" ")
        target = f" {option} {shlex.quote(name)}" if option.startswith("--") else ""
        return f"loadstone results clean {self.run_id}{target}"


@contextmanager
def held(path: Path, run_id: str) -> Iterator[None]:
    """Lock the journal's resources for this process.

    The journal of a run that resumes another's users is a link to theirs, and has their lock.
    """
    busy = f"another loadstone is at work with what run {run_id} made; wait for it, or end it"
    with locks.held(path.resolve().with_suffix(".lock"), busy=busy):
        yield


class Unwritable(EnvironmentUnusable):
    """The journal cannot be written, so nothing more may be created."""


class Journal:
    """An append-only file, written to disk line by line; thread-safe.

    Its contents are kept in memory too, in case the run's folder is deleted meanwhile.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._lock = threading.Lock()
        self._replay = _Replay()
        with _writing(path):
            try:
                with _open(path, os.O_RDWR) as file:
                    written = file.read()
                    whole = written.rfind(b"\n") + 1
                    if whole < len(written):
                        # A kill truncated the last line before the resource was created.
                        file.truncate(whole)
            except FileNotFoundError:
                written, whole = b"", 0
        for line in written[:whole].decode(errors="replace").splitlines():
            self._replay.apply(line)

    @classmethod
    def start(cls, path: Path, run_id: str, access: Access) -> Self:
        """Start (or continue) the journal of a run against this cloud."""
        journal = cls(path, run_id)
        cloud = access.cloud
        whither = {"identity_url": access.identity_url, "region": cloud.region or ""}
        journal._append("target", {"run_id": run_id, "chosen": cloud.chosen, **whither})
        return journal

    def create(self, kind: ResourceKind, name: str, domain_id: str | None = None) -> None:
        """Record that this is about to be created, and where if not in the run's domain."""
        self._append("create", {"kind": kind, "name": name, "domain_id": domain_id})

    def created(self, thing: Resource) -> None:
        """Record that this resource was created, with its id."""
        self._append("created", _entry(thing))

    def ready(self, user_id: str, how: UserReadiness) -> None:
        """Record that load can use this user."""
        # If this line is lost, the user is only prepared again, so do not wait for the disk.
        entry = {"id": user_id, "grants": how.grants, "day": how.day}
        self._append("ready", entry, waits=False)

    def removed(self, thing: Resource) -> None:
        """Record that this resource is gone."""
        self._append("removed", _entry(thing))

    def record(self) -> JournalContents | None:
        """Return the contents of the file, or if it is gone, of the copy in memory."""
        contents = read(self.path)
        with self._lock:
            replay = self._replay
            if contents is not None and {*replay.remaining} <= {
                _key(one) for one in contents.remaining
            }:
                return contents
            return replay.record(self.run_id)

    def _append(self, event: str, entry: Mapping[str, str | None], *, waits: bool = True) -> None:
        line = json.dumps({"event": event, **entry}).encode() + b"\n"
        if event != "create":  # what is not in the file is not created
            self._remember(line)
        self._write(line, waits=waits)
        if event == "create":
            self._remember(line)

    def _remember(self, line: bytes) -> None:
        with self._lock:
            self._replay.apply(line.decode())

    def _write(self, line: bytes, *, waits: bool) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with _writing(self.path), self._lock, _open(self.path, flags) as file:
            before = file.seek(0, os.SEEK_END)
            try:
                while line:
                    line = line[file.write(line) :]
                if waits:
                    os.fsync(file.fileno())
            except OSError:
                # On a full disk part of the line may be in the file, and the next line would
                # continue it.
                file.truncate(before)
                raise


def _open(path: Path, flags: int) -> FileIO:
    """Open a journal without a buffer.

    A symbolic link is refused, because it may lead out of the store; but not one to the journal of
    another run beside this one (see `resume`).
    """
    try:
        place = _beside(path) if path.is_symlink() else path
        handle = os.open(place, flags | os.O_NOFOLLOW | os.O_CLOEXEC, files.PRIVATE)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            problem.strerror = "it is a symbolic link"
        raise
    return FileIO(handle, "r" if flags == os.O_RDONLY else "r+" if flags & os.O_RDWR else "a")


def _beside(path: Path) -> Path:
    """Return the journal that a link leads to, if it is that of another run of the store."""
    match path.readlink().parts:
        case ("..", folder, name) if folder != ".." and name == JOURNAL:
            found = path.parent.parent / folder / JOURNAL
            return path if found.parent.is_symlink() else found
        case _:
            return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(f"{path}: cannot be written ({error.strerror})") from error


def read(path: Path) -> JournalContents | None:
    """Read a journal; None if there is none or it is empty."""
    try:
        # Text after the last newline is incomplete: its action was not started.
        with _open(path, os.O_RDONLY) as file:
            *lines, _ = file.read().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentUnusable(f"{path}: cannot be read ({error.strerror})") from error
    replay = _Replay()
    unread = [number for number, line in enumerate(lines, start=1) if not replay.apply(line)]
    if replay.target is None and not unread:
        return None
    contents = replay.record(path.parent.name)  # the folder is named after the run
    damaged = (_damage(path, number, contents.run_id) for number in unread)
    return replace(contents, unread=tuple(damaged))


def _damage(path: Path, number: int, run_id: str) -> str:
    return (
        f"{path}:{number}: cannot be read; what it named may be left: look in all domains for "
        f"names that begin with {domain_name(run_id)}"
    )


@dataclass(slots=True)
class _Replay:
    """State after the lines read so far."""

    target: tuple[str, str, str] | None = None
    region: str | None = None
    remaining: dict[tuple[str, ...], Resource] = field(default_factory=dict)
    ready: dict[str, UserReadiness] = field(default_factory=dict)

    def record(self, run_id: str) -> JournalContents:
        """Return the result of all lines; `run_id` is used if no line has it."""
        target = self.target or (run_id, "", "")
        remaining = tuple(self.remaining.values())
        return JournalContents(*target, remaining, dict(self.ready), region=self.region)

    def apply(self, line: str) -> bool:
        """Apply a line; return False if it is invalid."""
        try:
            self._apply(json.loads(line))
        except (ValueError, KeyError, TypeError):
            return False
        return True

    def _apply(self, entry: dict[str, str]) -> None:
        match entry["event"]:
            case "target":
                self.target = entry["run_id"], entry["chosen"], entry["identity_url"]
                self.region = entry.get("region")
            case "create" | "created":
                thing = _thing(entry)
                self.remaining[_key(thing)] = thing
            case "removed":
                self.remaining.pop(_key(_thing(entry)), None)
            case "ready":
                self.ready[entry["id"]] = UserReadiness(entry["grants"], entry["day"])
            case _:
                raise ValueError(entry["event"])


def _entry(thing: Resource) -> dict[str, str | None]:
    return {
        "kind": thing.kind,
        "name": thing.name,
        "id": thing.id,
        "domain_id": thing.domain_id,
    }


def _thing(entry: dict[str, str]) -> Resource:
    return Resource(
        ResourceKind(entry["kind"]), entry["name"], entry.get("id"), entry.get("domain_id")
    )


def _key(thing: Resource) -> tuple[str, ...]:
    return thing.kind, thing.name, thing.domain_id or ""
