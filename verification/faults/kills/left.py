"""What an ended command left behind, looked for as a user would, and in processes and files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from loadstone.cloud import Access, connect, from_environment
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind
from loadstone.lab import deployment
from loadstone.store.store import Store
from verification.faults.kills.commands import BROKEN, ended_trials

MARK = "LOADSTONE_BENCH_KILLS"  # in the environment of all that an attempt starts
PATIENCE_S = 1200.0
UNDONE_S = 120.0  # until all that undoes something has had its time
LOOKED_EVERY_S = 0.005
ENDED = ("interrupted", "finished", "aborted", "failed")


@dataclass(frozen=True, slots=True)
class Traces:
    """Looks for what an attempt left behind."""

    folder: Path  # of the attempt, with its store
    environment: Mapping[str, str]
    variables: Mapping[str, str]  # OS_* of the target
    kept_lab: str | None  # the lab that is the target

    def found(self) -> Iterator[str]:
        """Yield what is not as it has to be; clean up as a user would."""
        trials = ended_trials(self.folder)
        yield from self._faults()
        yield from self._labs()
        if not until(lambda: not self._processes(), UNDONE_S):
            yield f"processes left: {self._processes()}"
        yield from self._store(trials)
        yield from self._cloud()

    def _ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "loadstone", *words],
            env={name: value for name, value in self.environment.items() if name != MARK},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def _faults(self) -> Iterator[str]:
        """A watcher undoes what a killed command left; `fault --undo` what no process does."""
        journals = Path(self.environment["LOADSTONE_HOME"]) / "faults"
        until(lambda: not list(journals.glob("*.json")), UNDONE_S)
        if list(journals.glob("*.json")):
            undone = self._ask("fault", "--undo")
            yield f"a fault that its watcher did not undo; --undo: {undone.stdout}{undone.stderr}"
        if (self.folder / BROKEN).exists():
            yield "the fault of the file is in force"
        if self.kept_lab is None:
            return
        lab = deployment.load(self.kept_lab)
        if why := lab.failure():
            yield why
        for pid in lab.pids():
            if psutil.pid_exists(pid) and psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                yield f"process {pid} of the lab is stopped"

    def _labs(self) -> Iterator[str]:
        """Every lab that is there is in `lab list`, and `lab down` removes it."""
        listed = self._ask("lab", "list", "--json", "-")
        if listed.returncode != 0:
            yield f"lab list: {listed.returncode} {listed.stderr}"
            return
        for row in json.loads(listed.stdout):
            if row["name"] == self.kept_lab:
                continue
            removed = self._ask("lab", "down", "--purge", row["name"])
            if removed.returncode != 0:
                yield f"lab down --purge {row['name']}: {removed.returncode} {removed.stderr}"
        folder = Path(self.environment["LOADSTONE_HOME"]) / "lab/deployments"
        kept = {self.kept_lab}
        if left := [one.name for one in folder.glob("*") if one.is_dir() and one.name not in kept]:
            yield f"folders of labs: {', '.join(left)}"

    def _store(self, trials: Mapping[str, int]) -> Iterator[str]:
        """Every run is readable, has all trials that had ended, and can be cleaned."""
        store = self.folder / "store"
        if not store.exists():
            return  # the command was ended before it opened its store
        listed = self._ask("results", "list", "--json", "-")
        if listed.returncode != 0:
            yield f"results list: {listed.returncode} {listed.stderr}"
            return
        runs = json.loads(listed.stdout or "[]")
        if lost := sorted(set(trials) - {run["run_id"] for run in runs}):
            yield f"runs without a row: {', '.join(lost)}"
        for run in runs:
            run_id = run["run_id"]
            if run["status"] not in ENDED:
                yield f"the store says {run['status']}"
            shown = self._ask("results", "show", run_id, "--json", "-")
            if shown.returncode != 0:
                yield f"results show: {shown.returncode} {shown.stderr}"
                continue
            with Store.open_to_read(store) as opened:
                kept = sum(len(one.trials) for one in opened.get(run_id).measurements)
            if kept < trials.get(run_id, 0):
                yield f"{kept} of {trials[run_id]} ended trials kept"
            cleaned = self._ask("results", "clean", run_id)
            is_purged = "if it was removed with --purge" in cleaned.stderr  # above
            if cleaned.returncode != 0 and not is_purged:
                yield f"results clean: {cleaned.returncode} {cleaned.stdout}{cleaned.stderr}"

    def _cloud(self) -> Iterator[str]:
        """Name what the cloud still has of any run."""
        with self._access() as access:
            identity = Identity(access)
            for kind in (ResourceKind.USER, ResourceKind.PROJECT, ResourceKind.DOMAIN):
                found = identity.find(kind)
                names = [one.name for one in found if one.name.startswith("loadstone-")]
                if names:
                    yield f"{len(names)} left of kind {kind}: {', '.join(names[:3])}"

    def _access(self) -> Access:
        """Connect, as soon as the service has answered what it still had to."""
        end_s = time.monotonic() + UNDONE_S
        while True:
            try:
                return connect(from_environment(self.variables))
            except EnvironmentUnusable:
                if time.monotonic() > end_s:
                    raise

    def _processes(self) -> list[str]:
        """Return the processes that carry the mark."""
        wanted = f"{MARK}={self.environment[MARK]}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in path.read_bytes().split(b"\0"):
                    words = (path.parent / "cmdline").read_bytes().split(b"\0")
                    found.append(f"{path.parent.name} {b' '.join(words[:4]).decode()}")
            except OSError:
                continue  # ended meanwhile, or another user's
        return found


def until(holds: Callable[[], bool], patience_s: float) -> bool:
    """Wait until a condition holds; return False if it does not in this time."""
    end_s = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(LOOKED_EVERY_S)
    return True


def environment_of(home: Path, variables: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return the environment of an attempt."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return kept | dict(variables) | {MARK: mark, "LOADSTONE_HOME": str(home)}
