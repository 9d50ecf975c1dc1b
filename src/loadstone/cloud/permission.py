"""Restricts load to this machine unless the user explicitly permits another target."""

import ipaddress
import socket

from loadstone.cloud.cloud import Cloud
from loadstone.errors import EnvironmentUnusable, InvalidInput

FLAG = "--yes-load-this-target"


def require_permission(cloud: Cloud, yes: bool) -> None:
    """Refuse a target with any non-loopback address, unless `yes`."""
    if not yes:
        require_loopback(cloud.endpoint.host, cloud.endpoint.port, cloud.auth_url)


def require_loopback(host: str, port: int, where: str, about: str = "") -> None:
    """Refuse a host with any non-loopback address; `about` begins the message."""
    loopback_addresses(host, port, where, about)


def loopback_addresses(host: str, port: int, where: str, about: str = "") -> tuple[str, ...]:
    """Return the addresses of a host; InvalidInput if any of them is not a loopback address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # no name: an empty label, or one that is too long
        why = getattr(error, "strerror", None) or "not a name"
        raise EnvironmentUnusable(
            f"{where}: no address for host {host!r} ({why}); check the URL"
        ) from error
    outside = sorted({str(a[4][0]) for a in found if not _is_loopback(str(a[4][0]))})
    if outside:
        named = host if host == outside[0] else f"{host} ({outside[0]})"
        raise InvalidInput(
            f"{about}{named} is not this machine and load may harm it; "
            f"if you may load it, add {FLAG}"
        )
    return tuple(dict.fromkeys(str(address[4][0]) for address in found))


def is_loopback(host: str, port: int) -> bool:
    """Return whether all addresses of a host are loopback addresses."""
    try:
        require_loopback(host, port, host)
    except InvalidInput:
        return False
    return True


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
