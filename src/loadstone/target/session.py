"""The HTTP session of preparation and clean-up; load does not pass through it."""

import logging
from types import TracebackType
from typing import Any, Self

import requests
from keystoneauth1.session import Session
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse, disable_warnings
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import InsecureRequestWarning, ReadTimeoutError
from urllib3.util import Retry

from loadstone.target.cloud import Cloud

CONNECT_TIMEOUT_S = 10.0
# As long as an overloaded Keystone may still need for its backlog, and no hang for ever.
ANSWER_TIMEOUT_S = 60.0
# More connections than any context has workers, so that none is thrown away.
_POOL_SIZE = 64


class _ClosedConnections(Retry):
    """Sends again what was lost on a connection that the server had closed.

    Some servers (uwsgi's http-socket) close an idle connection without a word, so that the next
    request on it is lost. What may have been carried out, but was not answered in time, is not
    sent again here.
    """

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        if isinstance(error, ReadTimeoutError):
            raise error
        return super().increment(method, url, response, error, _pool, _stacktrace)


class _TwoTimeouts(HTTPAdapter):
    """Waits less long for a connection than for an answer; keystoneauth knows only one time."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        both = (CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S) if timeout is None else timeout
        return super().send(request, stream, both, verify, cert, proxies)


def open_session(cloud: Cloud) -> Session:
    """Give a keystoneauth session on connections of its own, which the caller closes."""
    for library in ("keystoneauth", "urllib3"):
        # Their warnings say again what our one line says.
        logging.getLogger(library).addHandler(logging.NullHandler())
    connections = requests.Session()
    # The load goes straight to the target, so preparation does too: no proxy, no netrc.
    connections.trust_env = False
    retries = _ClosedConnections(
        total=3, connect=0, read=3, redirect=0, status=0, other=0, allowed_methods=None
    )
    for scheme in ("http://", "https://"):
        connections.mount(scheme, _TwoTimeouts(pool_maxsize=_POOL_SIZE, max_retries=retries))
    tls = cloud.tls
    if not tls.verify:
        # The user has said so; it need not be said again for each request.
        disable_warnings(InsecureRequestWarning)
    cert = (tls.cert_file, tls.key_file) if tls.cert_file and tls.key_file else None
    return Session(
        auth=cloud.auth,
        session=connections,
        verify=tls.ca_file or tls.verify,
        cert=cert,
        app_name="loadstone",
    )
