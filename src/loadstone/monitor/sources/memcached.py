"""memcached, by its `stats` command."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.monitor.metrics import Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.service_source import KeptSource
from loadstone.monitor.sources.sockets import MOST_BYTES, Link, connect, number

# Its name, ours, unit.
VALUES = (
    ("cmd_get", "gets_total", "1"),
    ("cmd_set", "sets_total", "1"),
    ("get_hits", "hits_total", "1"),
    ("get_misses", "misses_total", "1"),
    ("evictions", "evictions_total", "1"),
    ("curr_items", "items", "1"),
    ("bytes", "memory_bytes", "B"),
    ("limit_maxbytes", "memory_limit_bytes", "B"),
    ("curr_connections", "connections", "1"),
    ("max_connections", "connections_limit", "1"),
    ("listen_disabled_num", "listen_disabled_total", "1"),
    ("bytes_read", "received_bytes_total", "B"),
    ("bytes_written", "sent_bytes_total", "B"),
)
END = b"END\r\n"
ERROR = re.compile(r"(CLIENT_|SERVER_)?ERROR\b")  # protocol.txt, "Error strings"
MOST_SHOWN = 100  # characters of an answer


@dataclass(slots=True)
class MemcachedSource(KeptSource[Link]):
    """One server, on a kept connection."""

    def read(self) -> Iterator[Reading]:
        """Read the statistics."""
        values = dict(
            line.split(" ", 2)[1:]
            for line in self._stats().splitlines()
            if line.startswith("STAT ")
        )
        for theirs, ours, unit in VALUES:
            value = number(values, theirs)
            if value is not None:
                yield Reading(self.name, ours, value, unit)

    def _stats(self) -> str:
        if self._link is None:
            self._link = connect(self.address)
        self._link.begin()
        answer = b""
        try:
            self._link.sendall(b"stats\r\n")
            while not answer.endswith(END):
                chunk = self._link.recv(65536)
                answer += chunk
                line = answer.partition(b"\r\n")[0].decode("ascii", "replace")
                if not chunk or ERROR.match(line):
                    raise Unreadable(f"it does not answer `stats`: {line[:MOST_SHOWN]!r}")
                if len(answer) > MOST_BYTES:
                    raise Unreadable(f"its answer is longer than {MOST_BYTES} bytes")
        except TimeoutError:
            self.close()
            if answer:
                raise
            raise Unreadable(
                "no answer to `stats` in time; with SASL (-S) it speaks the binary protocol only, "
                "which is not read"
            ) from None
        except (OSError, Unreadable):
            self.close()
            raise
        return answer.decode("ascii", "replace")
