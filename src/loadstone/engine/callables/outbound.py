"""Keeps a worker process from connecting beyond loopback."""

import ipaddress
import os
import socket
import sys
from typing import Any

# Raised by CPython before the address is used; the address is the one that is dialled.
_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


class NotPermitted(Exception):
    """A function tried to reach an address beyond loopback."""


class Guard:
    """Refuses connections beyond loopback from its installation to the end of the process.

    It sees every socket of Python's own `socket` module: requests, urllib3, httpx, asyncio. It does
    not see those of C libraries, nor those of programs that a function starts.
    """

    def __init__(self) -> None:
        self.refused: str | None = None  # the first address that was refused

    def install(self) -> None:
        """Begin to refuse."""
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        used, address = arguments[0], arguments[1]
        if used.family not in (socket.AF_INET, socket.AF_INET6) or address is None:
            return
        host = str(address[0])
        if is_loopback(host):
            return
        self.refused = self.refused or f"{host}:{address[1]}"
        raise NotPermitted(f"{host} is not loopback")


def ignore_proxies() -> None:
    """Remove the proxy variables from the environment.

    A proxy on loopback would forward load to other machines, which the guard cannot see. With load
    on other machines permitted, the proxy would be measured.
    """
    # The form of urllib's getproxies(), which requests and httpx use.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address; a name is not, since it may be looked up differently.

    Python's libraries look a name up first and connect to the address.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
