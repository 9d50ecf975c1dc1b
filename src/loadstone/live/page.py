"""The live page: what a command does, in a browser, while it measures."""

import hashlib
import hmac
import os
import secrets
import signal
import ssl
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Protocol

from loadstone.live import now
from loadstone.live.board import END, Board
from loadstone.live.feed import Viewer
from loadstone.live.site import (
    FORBIDDEN,
    HTML,
    NOT_FOUND,
    ListenAddress,
    Request,
    Response,
    Routes,
    SiteServer,
)
from loadstone.live.state import LiveState
from loadstone.report import html
from loadstone.report.section import Report
from loadstone.system.certificates import Authority

EVERY_S = 1.0  # between two updates of what is measured at present
RESULTS_EVERY_S = 3.0  # between two updates of what has ended
LAST_S = 3.0  # for browsers to take the final report
TOKEN_BYTES = 18


class Reports(Protocol):
    """What has ended, as reports."""

    def __call__(self, *, is_over: bool) -> Sequence[Report]:
        """Return the reports; cheap ones, without reading samples, until all `is_over`."""


class LivePage(Viewer, Routes):
    """Serves the page to those who know its address, which has a token.

    It takes a state by reference and renders it in a thread of its own, only while somebody looks.
    """

    def __init__(
        self,
        where: ListenAddress,
        reports: Reports,
        *,
        stop: Callable[[], None] | None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._reports = reports
        self._stop = stop
        self._state: LiveState | None = None
        self._shown: LiveState | None = None
        self._stored_shown = -1
        self._board = Board()
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._nonce = secrets.token_urlsafe(TOKEN_BYTES)
        self._over = Event()
        self._stopping = Lock()
        self._is_stopped = False
        self._site = SiteServer(where, self, "--live", tls)
        self._thread = Thread(target=self._render_on, name="live page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The page's address with its token, which is shown to the user alone."""
        return f"{self._site.url}/{self._token}/"

    @property
    def needs_resources(self) -> bool:  # type: ignore[override]  # an attribute in the protocol
        """Whether somebody looks."""
        return self._board.readers > 0

    def show(self, state: LiveState) -> None:
        """Take the present state."""
        self._state = state

    def close(self) -> None:
        """Give browsers the final report, and stop serving."""
        self._over.set()
        self._thread.join()
        with suppress(Exception):  # of a run, the result counts
            self._end()
        self._site.close()

    def _end(self) -> None:
        if self._board.readers:
            self._board.post(END, {"html": self._final()})
            self._board.wait_for_readers(LAST_S)

    def respond(self, request: Request, origin: str) -> Response:
        """Answer a request; without the token there is nothing."""
        _, _, below = request.path.partition("/")
        token, slash, name = below.partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self._token.encode()):
            return NOT_FOUND
        match request.method, name:
            case "GET", "":
                return self._document()
            case "GET", "events":
                return Response(200, "text/event-stream", self._board.events())
            case "POST", "stop" if self._stop is not None:
                if request.origin != origin or request.fetch_site not in ("", "same-origin"):
                    return FORBIDDEN
                self._stop_once(self._stop)
                return Response(202, body=b"stopping\n")
            case _:
                return NOT_FOUND

    def _stop_once(self, stop: Callable[[], None]) -> None:
        """Stop the command; a second Ctrl-C would cut its clean-up short."""
        with self._stopping:
            if not self._is_stopped and not self._over.is_set():
                self._is_stopped = True
                stop()

    def _document(self) -> Response:
        state = self._state
        title = now.step(state) if state else "Results so far"
        body = html.live_document(title, self._nonce, can_stop=self._stop is not None)
        policy = (
            f"default-src 'none'; script-src 'nonce-{self._nonce}'; style-src 'unsafe-inline'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        return Response(200, HTML, body.encode(), {"Content-Security-Policy": policy})

    def _final(self) -> str:
        """Return the page of the final report; empty if there is none."""
        with suppress(Exception):  # the command's own result and exit code count
            if reports := self._reports(is_over=True):
                # The page that it replaces allows scripts with its nonce only.
                return html.render(*reports).replace("<script>", f'<script nonce="{self._nonce}">')
        return ""

    def _render_on(self) -> None:
        left_s = 0.0  # until what has ended is rendered again
        while not self._over.wait(EVERY_S):
            left_s -= EVERY_S
            if not self._board.readers:
                continue
            state = self._state
            with suppress(Exception):  # a page never ends a run
                if state is not None and state is not self._shown:
                    self._shown = state
                    self._post_now(state)
            if left_s <= 0:
                left_s = RESULTS_EVERY_S  # also if it fails, which may have taken long
                with suppress(Exception):
                    left_s = self._post_results(state)

    def _post_now(self, state: LiveState) -> None:
        section = now.section(state)
        self._board.post(
            "now",
            {"step": section.title, "title": now.title(state), "html": html.present(section)},
        )

    def _post_results(self, state: LiveState | None) -> float:
        """Post what has ended, if that has changed; return the seconds until the next look."""
        stored = state.stored if state else self._stored_shown + 1
        if stored != self._stored_shown:
            if reports := self._reports(is_over=False):
                self._board.post("results", {"html": html.results(reports)})
            self._stored_shown = stored  # a store that was locked is read again
            return RESULTS_EVERY_S
        return 0.0


def interrupt() -> None:
    """Interrupt this process as Ctrl-C does; as SIGTERM does where Ctrl-C is ignored (`&`)."""
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGTERM if is_ignored else signal.SIGINT)


def own_certificate(address: ListenAddress) -> tuple[ssl.SSLContext, str]:
    """Return a TLS context with a new certificate, and the certificate's SHA-256 fingerprint."""
    addresses = [] if any(sign.isalpha() for sign in address.host) else [address.host]
    issued = Authority.create("Loadstone live page").issue("Loadstone live page", addresses)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory() as folder:  # readable by this user only
        file = Path(folder) / "both.pem"
        file.touch(0o600)
        file.write_text(issued.both)
        context.load_cert_chain(file)
    der = ssl.PEM_cert_to_DER_cert(issued.certificate)
    digest = hashlib.sha256(der).hexdigest().upper()
    return context, ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
