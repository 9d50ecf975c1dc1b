"""Chooses ports, all on loopback except the one for clients."""

import errno
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadstone.errors import EnvironmentUnusable

HOST = "127.0.0.1"
# Below the kernel's range for local ports of outgoing connections (32768 and above): the load
# itself could take such a port while a part restarts.
LOWEST, HIGHEST = 15000, 32000
TRIES = 200


@dataclass(slots=True)
class Ports:
    """The ports of one deployment. Ports of an earlier start are reused.

    Until `release` they are reserved, although nothing listens there yet.
    """

    before: Mapping[str, int]
    chosen: dict[str, int] = field(default_factory=dict)
    reservations: list[socket.socket] = field(default_factory=list)

    def allocate(self, purpose: str, requested: int | None = None, host: str = HOST) -> int:
        """Return the port for a purpose: the requested one, else the earlier one, else any."""
        if purpose not in self.chosen:
            port = self.before.get(purpose) if requested is None else requested
            while port is None or not (is_free(port, host) and self._reserve(port)):
                if requested is not None:
                    raise EnvironmentUnusable(
                        f"port {requested} on {host} is taken (or not allowed); "
                        "give another with --port, or leave it out to have a free one chosen"
                    )
                port = choose(host)
            self.chosen[purpose] = port
        return self.chosen[purpose]

    def release(self) -> None:
        """Release the reservations, once servers listen on the ports or will not be started."""
        for reservation in self.reservations:
            reservation.close()
        self.reservations.clear()

    def _reserve(self, port: int) -> bool:
        """Return whether the port is now reserved for this deployment.

        The reservation is an abstract Unix socket (man 7 unix): like a port it belongs to a network
        namespace, and it ends with the process.
        """
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            reservation.bind(f"\0loadstone-port-{port}")
        except OSError:
            reservation.close()
            return False
        self.reservations.append(reservation)
        return True


def is_free(port: int, host: str = HOST) -> bool:
    """Return whether a server could listen on the port.

    Raises EnvironmentUnusable if the address does not belong to this machine.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set this option, too: a port with connections in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            if problem.errno == errno.EADDRNOTAVAIL:
                raise EnvironmentUnusable(f"{host} is none of this machine's addresses") from None
            return False
        return True


def choose(host: str = HOST) -> int:
    """Return a free port."""
    for _ in range(TRIES):
        port = random.randrange(LOWEST, HIGHEST)  # noqa: S311  # no secret
        if is_free(port, host):
            return port
    raise EnvironmentUnusable(f"no free port between {LOWEST} and {HIGHEST} on {host}")
