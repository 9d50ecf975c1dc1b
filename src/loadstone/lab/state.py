"""State of a deployment on disk, from which any later command can find and stop it."""

import json
import os
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.processes import Process, boot_id
from loadstone.system import files

FILE = "state.json"


class DeploymentPhase(StrEnum):
    """Stage in the life of a deployment."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Record:
    """A started part: what is needed to stop it and to show its logs."""

    part: str
    process: Process | None
    ask: int  # number of the signal that stops it
    logs: tuple[str, ...]
    statistics: str = ""  # URL of its counters


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """State of a deployment. Its `settings` may hold secrets: only the owner can read the file."""

    name: str
    run: str  # identifies one start: a watcher stops only the start that it watched
    phase: DeploymentPhase
    boot: str
    settings: tuple[tuple[str, str], ...]  # KEY, VALUE of `lab up --with`
    ports: tuple[tuple[str, int], ...] = ()
    python: str = ""
    release: tuple[tuple[str, str], ...] = ()  # what was started, as `Release.pairs` writes it
    facts: tuple[tuple[str, str], ...] = ()
    records: tuple[Record, ...] = ()
    is_owned: bool = False  # by a command that started it for itself, such as `loadstone demo`
    # While it starts: what it was before, which it stays unless the start succeeds.
    before: "DeploymentState | None" = None

    def with_record(self, record: Record) -> "DeploymentState":
        """Return the state with this part added, or replaced in its place."""
        records = {one.part: one for one in self.records} | {record.part: record}
        return replace(self, records=tuple(records.values()))

    def stopped(self) -> "DeploymentState":
        """Return the state without processes; a start that failed is undone."""
        records = tuple(replace(record, process=None) for record in self.records)
        return replace(self.last, run=self.run, phase=DeploymentPhase.STOPPED, records=records)

    @property
    def last(self) -> "DeploymentState":
        """The last start that succeeded, which an interrupted one does not replace."""
        return self.before or self

    def setting(self, key: str) -> str | None:
        """Return the value of a KEY of `lab up --with`; None if it is unset."""
        return dict(self.settings).get(key)

    def port(self, purpose: str) -> int | None:
        """Return the port chosen for a purpose."""
        return dict(self.ports).get(purpose)

    @property
    def is_of_this_boot(self) -> bool:
        """Start times count from the boot: after a reboot none of the processes can be alive."""
        return self.boot == boot_id()

    @property
    def was_started(self) -> bool:
        """Whether all parts were started since the last boot; since then some may have died."""
        return self.phase is DeploymentPhase.RUNNING and self.is_of_this_boot


def secret_folder(folder: Path) -> Path:
    """Return the folder for passwords: private to the user, removed when the deployment stops."""
    return folder / "secret"


def scratch_folder(folder: Path) -> Path:
    """Return the folder for what only a start needs, removed when the deployment stops."""
    return folder / "scratch"


def write(folder: Path, state: DeploymentState) -> None:
    """Replace the state atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = {"folder": str(folder), **asdict(state)}
    files.write(folder / FILE, json.dumps(tree, indent=1), files.PRIVATE)


def write_secret(path: Path, text: str) -> None:
    """Write a private file into a private folder."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    files.write(path, text, files.PRIVATE)


def read(folder: Path) -> DeploymentState | None:
    """Return the state, or None if there is none."""
    path = folder / FILE
    try:
        tree = json.loads(path.read_text())
        found = _parse(tree, folder.name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as problem:
        raise EnvironmentUnusable(
            f"{path} cannot be read ({problem.strerror}); a lab belongs to the user who started "
            "it, which is root after `sudo loadstone`"
        ) from None
    except OSError as problem:
        raise EnvironmentUnusable(f"{path} cannot be read ({problem.strerror})") from None
    except (ValueError, KeyError, TypeError) as wrong:
        raise EnvironmentUnusable(
            f"{path} cannot be read ({type(wrong).__name__}); `loadstone lab down --purge "
            f"{folder.name}` ends its processes and removes the folder"
        ) from None
    # The processes in a copy of a deployment's folder, or of a home, are those of the original.
    original = Path(tree.get("folder", folder)) / FILE
    is_copy = os.path.exists(original) and not os.path.samefile(original, path)
    return found.stopped() if is_copy else found


def _parse(tree: dict[str, Any], name: str) -> DeploymentState:
    """Return a state under the name that its folder has, which may have been renamed."""
    return DeploymentState(
        name=name,
        run=str(tree["run"]),
        phase=DeploymentPhase(str(tree["phase"])),
        boot=str(tree["boot"]),
        settings=_pairs(tree["settings"]),
        ports=tuple((str(k), int(v)) for k, v in tree["ports"]),
        python=str(tree["python"]),
        release=_pairs(tree["release"]),
        facts=_pairs(tree["facts"]),
        records=tuple(_record(record) for record in tree["records"]),
        is_owned=bool(tree["is_owned"]),
        before=_parse(before, name) if (before := tree.get("before")) else None,
    )


def _pairs(rows: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in rows)


def _record(tree: dict[str, Any]) -> Record:
    process = tree["process"]
    return Record(
        part=str(tree["part"]),
        process=Process(int(process["pid"]), int(process["started_ticks"])) if process else None,
        ask=int(tree["ask"]),
        logs=tuple(map(str, tree["logs"])),
        statistics=str(tree["statistics"]),
    )
