"""Ports on loopback."""

import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadstone.errors import EnvironmentUnusable

HOST = "127.0.0.1"
# Below the range from which the kernel takes the local ports of outgoing connections (32768 up):
# a port there could be taken by the load itself while a part restarts.
LOWEST, HIGHEST = 15000, 32000
TRIES = 200


@dataclass(slots=True)
class Ports:
    """The ports of one deployment, chosen as its parts ask; the ones of before are kept."""

    before: Mapping[str, int]
    chosen: dict[str, int] = field(default_factory=dict)

    def give(self, purpose: str, asked: int | None = None) -> int:
        """Give the port for a purpose: the one asked for, else the one of before, else any."""
        if purpose not in self.chosen:
            taken = set(self.chosen.values())
            port = choose(asked, before=self.before.get(purpose))
            while port in taken:
                port = choose(None)
            self.chosen[purpose] = port
        return self.chosen[purpose]


def is_free(port: int) -> bool:
    """Say whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port that only waits out an old connection is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def choose(asked: int | None, *, before: int | None = None) -> int:
    """Give the port that was asked for, else the one used before, else any; only free ones."""
    if asked is not None:
        if not is_free(asked):
            raise EnvironmentUnusable(
                f"port {asked} on {HOST} is taken (or not allowed); "
                "give another with --port, or leave it out to have a free one chosen"
            )
        return asked
    if before is not None and is_free(before):
        return before
    for _ in range(TRIES):
        port = random.randrange(LOWEST, HIGHEST)  # noqa: S311  # no secret
        if is_free(port):
            return port
    raise EnvironmentUnusable(f"no free port between {LOWEST} and {HIGHEST} on {HOST}")
