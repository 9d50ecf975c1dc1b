"""haproxy, by `show stat` on its stats socket."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadstone.monitor.metrics import Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.service_source import ServiceSource
from loadstone.monitor.sources.sockets import exchange, number

# haproxy's management guide, 9.1: its column, ours, unit, factor.
VALUES = (
    ("qcur", "queue", "1", 1.0),
    ("qlimit", "queue_limit", "1", 1.0),
    ("scur", "sessions", "1", 1.0),
    ("slim", "sessions_limit", "1", 1.0),
    ("req_tot", "requests_total", "1", 1.0),
    ("stot", "sessions_total", "1", 1.0),
    ("econ", "connection_errors_total", "1", 1.0),
    ("eresp", "response_errors_total", "1", 1.0),
    ("wretr", "retries_total", "1", 1.0),
    ("dreq", "denied_total", "1", 1.0),
    ("hrsp_5xx", "answers_5xx_total", "1", 1.0),
    # Means over the last 1,024 requests.
    ("qtime", "queue_seconds", "s", 1e-3),
    ("rtime", "response_seconds", "s", 1e-3),
)
INFO = (
    ("CurrConns", "connections", "1"),
    ("Maxconn", "connections_limit", "1"),
    ("CumReq", "requests_total", "1"),
    ("Idle_pct", "idle_percent", "%"),
)


# Column `type`. The sessions of a socket (`option socket-stats`) are those of its frontend.
BACKEND, SERVER, SOCKET = "1", "2", "3"
# Beginnings of the column `status` of a server that gets requests: not DOWN, MAINT, DRAIN, NOLB.
IN_USE = ("UP", "no check")


@dataclass(slots=True)
class HaproxySource(ServiceSource):
    """One process of haproxy."""

    def read(self) -> Iterator[Reading]:
        """Read each frontend, backend and server, and the process."""
        text = exchange(self.address, b"show info;show stat\n").decode("ascii", "replace")
        info, _, table = text.partition("# pxname")
        if not table:
            raise Unreadable("it does not answer `show stat`")
        facts = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
        for theirs, ours, unit in INFO:
            value = number(facts, theirs)
            if value is not None:
                yield Reading(self.name, ours, value, unit)
        yield from self._rows("pxname" + table)

    def _rows(self, table: str) -> Iterator[Reading]:
        rows = list(csv.DictReader(table.splitlines()))
        unused = set(_unused(rows))
        for row in rows:
            if row.get("type") == SOCKET:
                continue
            if (row["pxname"], row["svname"]) in unused:
                row["slim"] = "0"
            source = f"{self.name}/{row['pxname']}/{row['svname'].lower()}"
            for theirs, ours, unit, factor in VALUES:
                value = number(row, theirs)
                if value is not None:
                    yield Reading(source, ours, value * factor, unit)


def _unused(rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the servers that get no requests, so that the sessions they may have help no backend.

    They are not up, or a backup: the first of these that is up gets requests once no other server
    is up.
    """
    # The column `act` of a backend is the number of its servers that are up, without backups.
    has_server = {
        row["pxname"] for row in rows if row.get("type") == BACKEND and row.get("act", "0") != "0"
    }
    for row in rows:
        if row.get("type") != SERVER:
            continue
        is_up = row.get("status", "UP").startswith(IN_USE)
        is_backup = row.get("bck") == "1"
        if not is_up or (is_backup and row["pxname"] in has_server):
            yield row["pxname"], row["svname"]
        elif is_backup:
            has_server.add(row["pxname"])
