"""A part of a deployment: a server, or something that must be made before one starts."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from loadstone.lab.processes import Process
from loadstone.lab.programs import Program

Say = Callable[[str], None]
Facts = tuple[tuple[str, str], ...]


class Part:
    """What a deployment knows of each of its parts; a part says only what it has.

    Stopping is the same for all (processes.stop), because it must work from the record on disk
    when all that knew the part has crashed.
    """

    __slots__ = ()
    ask: ClassVar[signal.Signals] = signal.SIGTERM  # on which it ends in an orderly way
    programs: ClassVar[tuple[Program, ...]] = ()  # that must be installed on the machine
    packages: ClassVar[tuple[str, ...]] = ()  # that the environment must hold

    @property
    def name(self) -> str:
        """Give the word for it in messages, `lab logs` and the state."""
        raise NotImplementedError

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Make what it needs on disk; the same again does no harm."""
        return

    def start(self) -> Process | None:
        """Start it; None when it has no process of its own."""
        return None

    def healthy(self) -> bool:
        """Say whether it serves."""
        return True

    def facts(self) -> Facts:
        """Give what a report says of it."""
        return ()

    def logs(self) -> tuple[Path, ...]:
        """Give its logs, the most telling one first."""
        return ()
