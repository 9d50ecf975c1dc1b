"""HTTP session for preparation and clean-up; load does not use it."""

import logging
import threading
import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import requests
from keystoneauth1.session import Session
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse, disable_warnings
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import InsecureRequestWarning, ReadTimeoutError
from urllib3.util import Retry

from loadstone.cloud.authorities import system_authorities
from loadstone.cloud.body import BodyTooLong, CappedBody
from loadstone.cloud.cloud import Cloud
from loadstone.cloud.loopback import POOLS
from loadstone.errors import EnvironmentUnusable
from loadstone.system.say import Say

CONNECT_TIMEOUT_S = 10.0
# From the request to the last byte of the response, long enough for an overloaded Keystone.
ANSWER_TIMEOUT_S = 60.0
# Interval of messages about a pending answer.
TELL_S = 5.0
# At least as many connections as any context has workers, so that none is discarded.
_POOL_SIZE = 64


class _ClosedConnections(Retry):
    """Retries requests that were lost on a connection that the server had closed.

    Some servers (uwsgi's http-socket) close idle connections silently, so that the next request is
    lost. Requests that may have been carried out are not sent again.
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


class BoundedAdapter(HTTPAdapter):
    """Limits the time of each exchange and the length of its answer, and reports pending ones.

    The time-outs of requests limit only the connection and the gap between two bytes, so a server
    that sends one byte per second would never time out. An answer that is too long raises
    BodyTooLong.
    """

    def __init__(self, say: Say, max_retries: Retry | int = 0, *, loopback_only: bool) -> None:
        super().__init__(pool_maxsize=_POOL_SIZE, max_retries=max_retries)
        self._say = say
        if loopback_only:
            self.poolmanager.pool_classes_by_scheme = POOLS

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002 (requests' signature; bodies are read here)
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request, and read its answer to the end."""
        both = (CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S) if timeout is None else timeout
        done = threading.Event()
        answers: list[requests.Response] = []
        failures: list[BaseException] = []

        def exchange() -> None:
            try:
                answer = super(BoundedAdapter, self).send(
                    request, True, both, verify, cert, proxies
                )
                answer.raw = CappedBody(answer.raw)
                _ = answer.content
                answers.append(answer)
            except BaseException as failure:
                failures.append(failure)
            finally:
                done.set()

        # A daemon thread: a pending request must not delay the end of the program.
        threading.Thread(target=exchange, daemon=True).start()
        self._await(done, request)
        if failures:
            raise failures[0]
        return answers[0]

    def _await(self, done: threading.Event, request: requests.PreparedRequest) -> None:
        began_s = time.monotonic()
        while not done.wait(min(TELL_S, ANSWER_TIMEOUT_S)):
            waited_s = time.monotonic() - began_s
            url = str(request.url).partition("?")[0]
            if waited_s >= ANSWER_TIMEOUT_S:
                raise requests.exceptions.ReadTimeout(f"{url}: no end", request=request)
            self._say(f"  waiting for {request.method} {url} ({waited_s:.0f} s)")


class _KeystoneAdapter(BoundedAdapter):
    """Also refuses redirects to other servers, and says what may be wrong with the URL."""

    def send(
        self, request: requests.PreparedRequest, *args: Any, **kwargs: Any
    ) -> requests.Response:
        url = str(request.url).partition("?")[0]
        try:
            answer = super().send(request, *args, **kwargs)
        except BodyTooLong as too_long:
            raise EnvironmentUnusable(f"{url}: {too_long}; is this Keystone's own URL?") from None
        except requests.RequestException:
            raise
        except OSError as problem:  # a file of TLS is gone, as with a lab that was purged
            raise EnvironmentUnusable(f"{url}: {problem}") from None
        _refuse_other_server(request, answer)
        return answer


def _refuse_other_server(request: requests.PreparedRequest, answer: requests.Response) -> None:
    """Refuse a redirect to another server, which would receive the password."""
    if not answer.is_redirect:
        return
    # keystoneauth treats a bare path as a URL.
    answer.headers["location"] = urljoin(str(request.url), answer.headers["location"])
    whither = answer.headers["location"].partition("?")[0]
    origin, other = urlsplit(str(request.url)), urlsplit(whither)
    if (origin.scheme, origin.netloc) != (other.scheme, other.netloc):
        raise EnvironmentUnusable(
            f"{origin.scheme}://{origin.netloc}{origin.path}: redirects to {whither}; give the URL "
            "of Keystone itself"
        )


def open_session(
    cloud: Cloud, say: Say = lambda _: None, *, loopback_only: bool = False
) -> Session:
    """Return a keystoneauth session on connections of its own, which the caller closes.

    `say` reports every few seconds which response is pending. With `loopback_only` a request to
    another machine raises InvalidInput before it is sent.
    """
    for library in ("keystoneauth", "urllib3"):
        # Their warnings repeat our own message.
        logging.getLogger(library).addHandler(logging.NullHandler())
    connections = requests.Session()
    # Load goes straight to the target, so preparation does too: no proxy, no netrc.
    connections.trust_env = False
    retries = _ClosedConnections(
        total=3,
        connect=0,
        read=3,
        redirect=0,
        status=0,
        other=0,
        allowed_methods=None,
        respect_retry_after_header=False,  # else a 429 or 503 that has it would be an error
    )
    for scheme in ("http://", "https://"):
        connections.mount(scheme, _KeystoneAdapter(say, retries, loopback_only=loopback_only))
    tls = cloud.tls
    if not tls.verify:
        # The user has disabled verification; no warning for each request.
        disable_warnings(InsecureRequestWarning)
    cert = (tls.cert_file, tls.key_file) if tls.cert_file and tls.key_file else None
    return Session(
        auth=cloud.auth,
        session=connections,
        verify=tls.ca_file or (tls.verify and system_authorities()),
        cert=cert,
        app_name="loadstone",
    )
