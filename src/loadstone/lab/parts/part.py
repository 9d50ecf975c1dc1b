"""Interface of the parts of a deployment: servers, environments and databases."""

import signal
from pathlib import Path
from typing import ClassVar

from loadstone.lab.processes import Process
from loadstone.lab.programs import Program
from loadstone.system.say import Say

Facts = tuple[tuple[str, str], ...]


class Part:
    """One part of a deployment. Subclasses override what differs from these defaults.

    Stopping is the same for all parts (processes.stop), because it must work from the record on
    disk after a crash.
    """

    __slots__ = ()
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM  # for an orderly shutdown
    packages: ClassVar[tuple[str, ...]] = ()  # must be installed in the environment
    # Consecutive parts with this flag start in parallel.
    starts_beside_others: ClassVar[bool] = False
    # Whether reports show its facts and `loadstone monitor` reads its counters.
    is_reported: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Name in messages, `lab logs` and the state."""
        raise NotImplementedError

    @property
    def programs(self) -> tuple[Program, ...]:
        """Programs that must be installed on the machine."""
        return ()

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Create what the part needs on disk. May be called again."""
        return

    def start(self) -> Process | None:
        """Start it; return None if it has no process of its own."""
        return None

    def healthy(self) -> bool:
        """Return whether it serves requests."""
        return True

    def facts(self) -> Facts:
        """Return its rows for reports."""
        return ()

    def statistics(self) -> str:
        """Return the URL at which `loadstone monitor` reads its counters; empty: none."""
        return ""

    def logs(self) -> tuple[Path, ...]:
        """Return its logs, the most relevant first."""
        return ()
