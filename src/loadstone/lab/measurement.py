"""Ensures that a target has one measurement at a time.

Each measurement holds a lock on a file of its own in the target's folder. The kernel releases
it when the process ends, however it ends: a file without a lock is a leftover. Other users, and
those with another LOADSTONE_HOME, have other folders; they see its mark (`system.presence`).
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.system import locks, paths, presence

FOLDER = "measurements"
RUN = "run "
BESIDE = "beside "


@dataclass(frozen=True, slots=True)
class ActiveMeasurement:
    """A measurement in progress, described by its file."""

    path: Path
    place: str = ""  # HOST:PORT, by which other users of this machine know it

    @property
    def name(self) -> str:
        """Run and process, as in "run 20261122-0731-ab12cd (pid 4711)"."""
        process = f"pid {self.path.name.partition('-')[0]}"
        run = self._noted(RUN)
        return f"run {run[-1]} ({process})" if run else process

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process holds it."""
        return self.path.name.startswith(f"{os.getpid()}-")

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the measurements that ran on the same target at the same time."""
        # Its own file may be gone, as after `lab down --purge`.
        elsewhere = _owners_elsewhere(self.path.parent, self.place, self.path.name)
        return tuple(dict.fromkeys((*self._noted(BESIDE), *elsewhere)))

    def set_run(self, run_id: str) -> None:
        """Record the id of the run."""
        self._note(f"{RUN}{run_id}")

    def add_beside(self, name: str) -> None:
        """Record another measurement on the same target."""
        self._note(f"{BESIDE}{name}")

    def _note(self, line: str) -> None:
        # On a full disk, others see the process without its run.
        with suppress(OSError), self.path.open("a") as file:
            file.write(f"{line}\n")

    def _noted(self, kind: str) -> tuple[str, ...]:
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return ()
        found = (line.removeprefix(kind) for line in lines if line.startswith(kind))
        return tuple(dict.fromkeys(found))


@contextmanager
def measuring(
    folder: Path, place: str = "", *, anyway: bool = False, shares: bool = False
) -> Iterator[ActiveMeasurement]:
    """Reserve a target for one measurement; `anyway` allows others at the same time.

    `folder` is that of a lab, or one in `targets/` that stands for the service at `place`
    (HOST:PORT). With `shares`, this process may measure it twice at once: two entries of
    clouds.yaml may be the same service.
    """
    token = secrets.token_hex(4)
    own = ActiveMeasurement(folder / FOLDER / f"{os.getpid()}-{token}", place)
    with ExitStack() as stack:
        with locks.held(folder / f"{FOLDER}.lock"):
            found = _at_work(own.path.parent)
            stack.enter_context(locks.held(own.path))
            stack.callback(own.path.unlink, missing_ok=True)
            if place:
                # Before it looks for others, so that of two at the same time at least one sees.
                stack.enter_context(presence.marked(place, token))
            others = [one for one in found if not (shares and one.is_of_this_process)]
            owners = [*(one.name for one in others), *own.beside]
            if owners and not anyway:
                names = " and ".join(owners)
                what = place if folder.parent == paths.targets() else f"lab {folder.name}"
                raise EnvironmentUnusable(
                    f"{what} is being measured by {names}, and measurements at the same time "
                    "falsify each other: wait for it, or add --anyway"
                )
        for other in others:
            own.add_beside(other.name)
            other.add_beside(own.name)
        yield own


def measured_by(folder: Path, place: str) -> tuple[str, ...]:
    """Return who measures a target now, without reserving it."""
    found = _at_work(folder / FOLDER)
    return (*(one.name for one in found), *_owners_elsewhere(folder / FOLDER, place))


def _owners_elsewhere(folder: Path, place: str, own: str = "") -> tuple[str, ...]:
    """Return the owners of measurements of a place that are noted in another home folder."""
    if not place:
        return ()
    known = {own, *(path.name for path in folder.glob("*"))}
    found = (one for one in presence.marks(place) if f"{one.pid}-{one.token}" not in known)
    return tuple(one.owner for one in found)


def _at_work(folder: Path) -> tuple[ActiveMeasurement, ...]:
    """Return the measurements whose processes live; remove the files of dead ones."""
    found = []
    for path in sorted(folder.glob("*")):
        try:
            with locks.held(path, busy="held"):
                path.unlink(missing_ok=True)
        except EnvironmentUnusable:
            found.append(ActiveMeasurement(path))
    return tuple(found)
