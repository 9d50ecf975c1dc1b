"""HTTP connections to loopback only: to the addresses that were checked, looked up once."""

import socket

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError

from loadstone.cloud.permission import loopback_addresses
from loadstone.errors import EnvironmentUnusable


class _LoopbackConnection(HTTPConnection):
    """Connects to a checked address of its host; a second look-up could give another one."""

    scheme = "http"

    def _new_conn(self) -> socket.socket:
        named = self._dns_host
        url = f"{self.scheme}://{named}:{self.port}"
        try:
            *others, last = loopback_addresses(named, self.port or 0, url, f"{url}: ")
        except EnvironmentUnusable as unknown:
            raise NewConnectionError(self, str(unknown)) from unknown.__cause__
        try:
            for address in others:
                self._dns_host = address
                try:
                    return super()._new_conn()
                except NewConnectionError:
                    continue
            self._dns_host = last
            return super()._new_conn()
        finally:
            self._dns_host = named  # TLS checks the certificate for this name


class _LoopbackTlsConnection(_LoopbackConnection, HTTPSConnection):
    scheme = "https"


class _LoopbackPool(HTTPConnectionPool):
    ConnectionCls = _LoopbackConnection


class _LoopbackTlsPool(HTTPSConnectionPool):
    ConnectionCls = _LoopbackTlsConnection


POOLS = {"http": _LoopbackPool, "https": _LoopbackTlsPool}
