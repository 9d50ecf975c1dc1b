"""Load goes to this machine only, unless the user says otherwise in so many words."""

import ipaddress
import socket

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.target.cloud import Cloud

FLAG = "--yes-load-this-target"


def require_permission(cloud: Cloud, yes: bool) -> None:
    """Refuse a target of which any address is not loopback, unless `yes`."""
    if yes:
        return
    host = cloud.endpoint.host
    try:
        found = socket.getaddrinfo(host, cloud.endpoint.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise EnvironmentUnusable(
            f"{cloud.auth_url}: no address for host {host!r} ({error.strerror}); check the URL"
        ) from error
    outside = sorted({str(a[4][0]) for a in found if not _is_loopback(str(a[4][0]))})
    if outside:
        named = host if host == outside[0] else f"{host} ({outside[0]})"
        raise InvalidInput(
            f"{named} is not this machine and load may harm it; if you may load it, add {FLAG}"
        )


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
