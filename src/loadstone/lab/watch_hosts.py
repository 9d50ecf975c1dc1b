"""Hosts of a fleet that are only watched: workers with the role `watch`."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from loadstone.engine.fleet import client
from loadstone.engine.fleet.address import FleetAddress, SchedulerAddress
from loadstone.engine.fleet.remote import RemoteMember
from loadstone.engine.version import version
from loadstone.monitor.metrics import Reading
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.machine import PROC, read_files
from loadstone.monitor.sources.ssh import RoleCpu, host_readings
from loadstone.system.say import Say

if TYPE_CHECKING:
    from distributed import Client

ANSWER_S = 5.0
COMMANDS_EVERY = 10  # reads; command lines cost more than the rest


class HostReader:
    """Reads a host's /proc, and the CPU of its processes by role.

    Runs as a Dask actor; several clients may each have one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._cpu = RoleCpu()
        self._count = 0

    def version(self) -> str:
        """Return the version of Loadstone there."""
        return version()

    def read(self) -> tuple[Reading, ...]:
        """Return all readings."""
        texts = read_files()
        processes = [one for one in PROC.iterdir() if one.name.isdigit()]
        texts["processes"] = "\n".join(_text(one / "stat").strip() for one in processes)
        if self._count % COMMANDS_EVERY == 0:
            texts["commands"] = "\n".join(f"{one.name} {_command(one)}" for one in processes)
        self._count += 1
        return tuple(host_readings(texts, self._name, self._cpu))


def _command(process: Path) -> str:
    return " ".join(_text(process / "cmdline").replace("\0", " ").split())


def _text(path: Path) -> str:
    """Return the text of a file; empty: the process has ended."""
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""


@dataclass(slots=True)
class WatchedHost:
    """The monitors of a host that sends no load."""

    name: str
    reader: RemoteMember = field(repr=False)
    is_remote: ClassVar[bool] = True

    def read(self) -> tuple[Reading, ...]:
        """Return the host's readings."""
        try:
            found: tuple[Reading, ...] = self.reader.read().result(timeout=ANSWER_S)
        except TimeoutError:
            raise Unreadable(f"no answer within {ANSWER_S:g} s") from None
        except Exception as error:
            raise Unreadable("its worker is gone") from error
        return found

    def close(self) -> None:
        """Do nothing: the client owns the connection."""


@contextmanager
def watched_hosts(fleet: FleetAddress, monitors: Sequence[Monitor], say: Say) -> Iterator[None]:
    """Add the watched hosts of a fleet to the monitors, until the end.

    A fleet of which only some workers send load is shared with other measurements. Its watched
    hosts serve them all, so their readings cannot be attributed to one.
    """
    if not isinstance(fleet, SchedulerAddress) or fleet.workers or not monitors:
        yield
        return
    with client.opened(fleet) as dask, ExitStack() as stack:
        found = [_started(dask, worker, say) for worker in client.watch_hosts(dask)]
        hosts = [one for one in found if one is not None]
        for monitor in monitors:
            stack.enter_context(monitor.reading(hosts))
        yield


def _started(dask: "Client", worker: client.FleetWorker, say: Say) -> WatchedHost | None:
    """Return a host's monitors; None, and a line that says why: it cannot be watched."""
    try:
        reader = client.start_actor(dask, worker, HostReader, worker.host).member()
        client.require_version(worker.host, reader.version().result(timeout=ANSWER_S))
    except Exception as error:  # a monitor never ends a run
        say(f"{worker.host} is not watched: {str(error) or 'no answer'}")
        return None
    return WatchedHost(worker.host, reader)
