"""Apache, by mod_status."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from loadstone.monitor.metrics import Reading
from loadstone.monitor.sources.sockets import StatusPage, number

VALUES = (
    ("BusyWorkers", "slots_busy"),
    ("IdleWorkers", "slots_idle"),
    ("Processes", "workers"),
    ("ConnsTotal", "connections"),
    ("Total Accesses", "requests_total"),
)
OWN = 1  # the thread that serves this status page


@dataclass(slots=True)
class ApacheSource(StatusPage):
    """One server; its threads are slots, except the one that serves the status page."""

    default_path: ClassVar[str] = "/server-status"
    _limit: int | None = field(default=None, init=False)  # threads; None: not read yet

    @property
    def path(self) -> str:
        """The page, in the form for programs."""
        return f"{self.address.path or self.default_path}?auto"

    def read(self) -> Iterator[Reading]:
        """Read busy and idle threads, connections, requests."""
        try:
            lines = self.text().splitlines()
        except TimeoutError:
            self.close()
            if self._limit is None:
                raise
            # The status page needs only a free thread, and none became free before the time-out.
            yield Reading(self.name, "slots_busy", self._limit)
            yield Reading(self.name, "slots_idle", 0)
            yield Reading(self.name, "slots_limit", self._limit)
            return
        values = dict(line.split(": ", 1) for line in lines if ": " in line)
        for theirs, ours in VALUES:
            value = number(values, theirs)
            if value is not None:
                own = OWN if ours == "slots_busy" else 0
                yield Reading(self.name, ours, max(value - own, 0))
        board = values.get("Scoreboard", "")
        if board:
            self._limit = len(board) - OWN
            yield Reading(self.name, "slots_limit", self._limit)
