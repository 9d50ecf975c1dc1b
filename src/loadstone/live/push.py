"""Pushes the metrics of a command to a receiver while it measures.

The values are those of `live.metrics`, as sums since the command began. They are sent in a thread
of their own: a receiver that is away or slow costs one line, and delays nothing. Sums need no
sending again: the next push has all that a failed one had.
"""

import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import requests

from loadstone.errors import InvalidInput
from loadstone.live.feed import Viewer
from loadstone.live.state import LiveState
from loadstone.system.say import Say

EVERY_S = 10.0
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"  # OpenTelemetry's own variable, in milliseconds
# How long the command waits at its end until the last figures have arrived.
LAST_PUSH_S = 5.0
HASTY_LAST_PUSH_S = 1.0  # after Ctrl-C, a failure, or if the receiver did not answer before
MOST_HEADERS_BYTES = 1 << 16
_HEADER = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[\x20-\x7e]+)")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where metrics are pushed, with the headers that the receiver asks for."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets


def receiver_url(text: str, option: str, path: str, example: str) -> str:
    """Return a URL, with `path` if it has none; InvalidInput if it is none, or holds a secret."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not text.isprintable() or " " in text:
        raise InvalidInput(f"not a URL of a receiver; write {example}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInput(
            "the URL has a user, a query or a fragment, which other users of this machine can see; "
            f"write headers with secrets into a file and name it by {option}-headers"
        )
    return text if parts.path.strip("/") else text.rstrip("/") + path


def read_headers(path: Path, option: str) -> dict[str, str]:
    """Read a file with a header in each line, as `Name: value`; `option` begins the messages."""
    where = f"{option} {path}"
    try:
        with path.open("rb") as file:
            content = file.read(MOST_HEADERS_BYTES + 1)
        text = content.decode()
    except OSError as problem:
        raise InvalidInput(f"{where}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{where}: not UTF-8") from None
    if len(content) > MOST_HEADERS_BYTES:
        raise InvalidInput(f"{where}: more than {MOST_HEADERS_BYTES:,} bytes")
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            raise InvalidInput(f"{where}, line {number}: not a header; write NAME: VALUE")
        if match["name"].lower() in map(str.lower, headers):
            raise InvalidInput(
                f"{where}, line {number}: {match['name']} is given twice; join the values with a "
                "comma"
            )
        headers[match["name"]] = match["value"]
    return headers


class MetricsPush(Viewer):
    """Pushes metrics every few seconds, and the last ones when the command ends."""

    needs_latencies = True

    def __init__(self, receiver: "Receiver", say: Say) -> None:
        self._receiver = receiver
        self._say = say
        self._state = LiveState(0.0, 0.0)  # counters exist from the start, at 0
        self._began_ns = time.time_ns()
        self._every_s = _interval_s()
        self._over = Event()
        self._is_said = False
        self._thread = Thread(target=self._push_until_over, name="push", daemon=True)

    def show(self, state: LiveState) -> None:
        """Take the present state."""
        self._state = state

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Push the last figures; a receiver that does not take them in time is left alone."""
        is_hasty = kind is not None or bool(self._receiver.problem)
        self._over.set()
        self._thread.join(HASTY_LAST_PUSH_S if is_hasty else LAST_PUSH_S)
        if self._thread.is_alive():
            self._complain(self._receiver.problem or "it did not take the last figures in time")
            self._receiver.end()

    def _push_until_over(self) -> None:
        self._push()  # at once, so that a wrong URL is known early
        while not self._over.wait(self._every_s):
            self._push()
        self._push()

    def _push(self) -> None:
        try:
            is_taken = self._receiver.send(self._state, self._began_ns, time.time_ns())
            problem = self._receiver.problem
        except Exception as wrong:  # what shows a run never ends it
            is_taken, problem = False, f"cannot be sent ({type(wrong).__name__})"
        if not is_taken:
            self._complain(problem)

    def _complain(self, problem: str) -> None:
        """Say once that metrics do not arrive."""
        if not self._is_said:
            self._is_said = True
            about = f"{self._receiver.option} {self._receiver.url}"
            self._say(f"{about}: {problem}; the measurement is not affected")


class ReceiverSession(requests.Session):
    """Reads no body and no netrc, and takes a redirect for a failure."""

    problem = ""  # of the last request

    def __init__(self) -> None:
        super().__init__()
        # Without an `auth`, requests replaces the chosen Authorization by a password of ~/.netrc,
        # which is for other programs. `trust_env = False` would also ignore proxies.
        self.auth = lambda request: request

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        try:
            # A body may be long, or never end. Its connection is closed instead.
            own = {"stream": True, "allow_redirects": False}
            response = super().request(*args, **{**options, **own})
        except requests.Timeout:
            self.problem = "no answer in time"
            raise
        except requests.exceptions.SSLError:
            self.problem = "its certificate is not trusted, or it does not speak TLS"
            raise
        except requests.RequestException:
            self.problem = "cannot be reached"
            raise
        response.close()
        self.problem = f"HTTP status {response.status_code}" if response.status_code >= 300 else ""
        if 300 <= response.status_code < 400:  # exporters take it for a success
            raise requests.TooManyRedirects(self.problem)
        return response


class Receiver(ABC):
    """A server that metrics are pushed to; each kind has its own protocol."""

    option: ClassVar[str]  # of the command line, which selects it

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = ReceiverSession()

    @property
    def problem(self) -> str:
        """Why the last request failed; empty if it succeeded."""
        return self._session.problem

    @abstractmethod
    def send(self, state: LiveState, began_ns: int, now_ns: int) -> bool:
        """Send the metrics of a state, and return whether the server accepted them."""

    def end(self) -> None:
        """End the wait between attempts, of a receiver that repeats them."""
        return


def _interval_s() -> float:
    try:
        interval_s = float(os.environ.get(INTERVAL, "")) / 1000
    except ValueError:
        return EVERY_S
    return interval_s if 0 < interval_s < inf else EVERY_S
