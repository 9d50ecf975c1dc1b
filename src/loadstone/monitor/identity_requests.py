"""Counts the requests to Keystone during a load by kind, from Keystone's access log."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from loadstone.system.say import Say

QUIET_S = 5.0  # without load, to measure the idle rate of requests
FLUSH_S = 0.3  # log lines may be written later than the responses
# Log format of lab/parts/uwsgi.py: start in ms since 1970, method, path, status, User-Agent.
_LINE = re.compile(r"(\d+) ([A-Z]+) (\S+) (\d{3}) (.*)")
_TOKENS = "/v3/auth/tokens"
_ROOTS = ("", "/v3")


class RequestKind(StrEnum):
    """Kinds of requests to Keystone, by their purpose."""

    LOGIN = "login"  # by clients
    VALIDATION = "validation"
    REVOCATION = "revocation"
    OTHER = "other"
    # Once for each process of a service and lifetime of its token, however many iterations.
    SERVICE_LOGIN = "service login"
    DISCOVERY = "discovery"

    @property
    def is_once(self) -> bool:
        """Whether it is caused by a service's start or token instead of by iterations."""
        return self in (RequestKind.SERVICE_LOGIN, RequestKind.DISCOVERY)


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One line of the log."""

    at_s: float  # Unix time
    kind: RequestKind


@dataclass(frozen=True, slots=True)
class KindCount:
    """Requests of one kind during a load."""

    kind: RequestKind
    count: int
    idle: float  # of these, the number expected without load


@dataclass(frozen=True, slots=True)
class MeasuredCapacity:
    """N of requests of one kind, from an earlier search on the same configuration."""

    kind: RequestKind
    rate_rps: float
    run_id: str


@dataclass(frozen=True, slots=True)
class IdentityRequests:
    """Requests to Keystone that a load caused."""

    iterations: int  # that ended
    kinds: tuple[KindCount, ...]  # those that occurred
    capacities: tuple[MeasuredCapacity, ...] = ()

    def per_iteration(self, kind: RequestKind) -> float:
        """Return how many requests of a kind one iteration caused."""
        found = (max(0.0, one.count - one.idle) for one in self.kinds if one.kind is kind)
        return sum(found) / self.iterations if self.iterations else 0.0

    @property
    def total_per_iteration(self) -> float:
        """Requests that one iteration caused, without those of `RequestKind.is_once`."""
        return sum(self.per_iteration(kind) for kind in RequestKind if not kind.is_once)

    @property
    def bound_rps(self) -> float | None:
        """Iterations per second at which these requests saturate Keystone; None if N is unknown.

        The utilisation by each kind is its rate divided by its N (utilisation law). Logins and
        validations count; each of the two that occurs needs a known N.
        """
        known = {one.kind: one.rate_rps for one in self.capacities}
        used = 0.0
        for kind in (RequestKind.LOGIN, RequestKind.VALIDATION):
            each = self.per_iteration(kind)
            if each and kind not in known:
                return None
            used += each / known[kind] if each else 0.0
        return 1 / used if used else None


def parse(lines: Iterable[str]) -> Iterator[LoggedRequest]:
    """Yield the requests of an access log; skip other lines."""
    for line in lines:
        found = _LINE.fullmatch(line.strip())
        if found is not None:
            at_ms, method, path, _, agent = found.groups()
            yield LoggedRequest(int(at_ms) / 1000, kind_of(method, path, agent))


def kind_of(method: str, path: str, agent: str) -> RequestKind:
    """Return the kind of a request."""
    place = path.partition("?")[0].rstrip("/")
    if place == _TOKENS:
        match method:
            case "POST":
                is_service = "keystonemiddleware" in agent or agent.startswith(_SERVICES)
                return RequestKind.SERVICE_LOGIN if is_service else RequestKind.LOGIN
            case "GET" | "HEAD":
                return RequestKind.VALIDATION
            case "DELETE":
                return RequestKind.REVOCATION
    return RequestKind.DISCOVERY if place in _ROOTS else RequestKind.OTHER


# keystoneauth puts the program's name first in the User-Agent.
_SERVICES = ("uwsgi ", "nova-")


@dataclass(frozen=True, slots=True)
class AccessLogs:
    """The access logs of a Keystone, and their idle request rates."""

    paths: tuple[Path, ...]
    idle_rps: Mapping[RequestKind, float] = field(default_factory=dict)

    @classmethod
    def opened(cls, paths: Sequence[Path], say: Say) -> "AccessLogs":
        """Open the logs and measure the idle request rates for QUIET_S seconds."""
        say(f"counting for {QUIET_S:.0f} s what asks Keystone without load")
        began_s = time.time()
        time.sleep(QUIET_S)
        logs = cls(tuple(paths))
        seen = logs.count(began_s, time.time())
        return cls(logs.paths, {kind: count / QUIET_S for kind, count in seen.items()})

    def count(self, since_s: float, until_s: float) -> Counter[RequestKind]:
        """Count the requests that began between two moments (Unix time)."""
        time.sleep(FLUSH_S)
        found: Counter[RequestKind] = Counter()
        for path in self.paths:
            try:
                with path.open(errors="replace") as lines:
                    found.update(one.kind for one in parse(lines) if since_s <= one.at_s <= until_s)
            except FileNotFoundError:
                continue  # no request yet
        return found

    def caused(self, since_s: float, until_s: float, iterations: int) -> IdentityRequests:
        """Return the requests caused by a load between two Unix times."""
        counts = self.count(since_s, until_s)
        lasted_s = until_s - since_s
        kinds = tuple(
            KindCount(kind, counts[kind], self.idle_rps.get(kind, 0.0) * lasted_s)
            for kind in RequestKind
            if counts[kind]
        )
        return IdentityRequests(iterations, kinds)
