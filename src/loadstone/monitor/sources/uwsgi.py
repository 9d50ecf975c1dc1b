"""uWSGI, by its stats server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loadstone.monitor.metrics import Reading, with_source
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.service_source import ServiceSource
from loadstone.monitor.sources.sockets import exchange


@dataclass(slots=True)
class UwsgiSource(ServiceSource):
    """One master and its workers."""

    def read(self) -> Iterator[Reading]:
        """Read busy slots (threads of all workers), the listen queue, requests and respawns."""
        try:
            stats: dict[str, Any] = json.loads(exchange(self.address, b""))
            workers = stats["workers"]
            # Workers without a pid have ended; `cores` are a worker's threads.
            cores = [core for one in workers if one["pid"] for core in one["cores"]]
            rows = (
                ("slots", len(cores), "1"),
                ("slots_busy", sum(bool(core["in_request"]) for core in cores), "1"),
                ("workers", sum(bool(one["pid"]) for one in workers), "1"),
                ("workers_busy", sum(one["status"] == "busy" for one in workers), "1"),
                ("queue", stats["listen_queue"], "1"),
                ("queue_errors_total", stats["listen_queue_errors"], "1"),
                ("requests_total", sum(one["requests"] for one in workers), "1"),
                ("exceptions_total", sum(one["exceptions"] for one in workers), "1"),
                ("respawns_total", sum(one["respawn_count"] for one in workers), "1"),
                ("harakiri_total", sum(one["harakiri_count"] for one in workers), "1"),
                ("running_seconds_total", sum(one["running_time"] for one in workers) / 1e6, "s"),
            )
        except (ValueError, KeyError, TypeError) as problem:
            raise Unreadable(f"its statistics have another form ({problem})") from None
        yield from with_source(self.name, rows)
