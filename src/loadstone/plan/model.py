"""The plan of a load: a serialisable value that an engine runs."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from loadstone.plan.load import Load
from loadstone.plan.script import Steps, WeightedScript

if TYPE_CHECKING:
    from loadstone.plan.trace import Trace  # needs numpy

Http = Literal["1.1", "2"]
Retries = Literal["unread", "never"]
# From making a plan to its first request, and the difference between clocks.
_MARGIN_S = 15.0
# Of the time that late answers may take (minutes, in a task), tokens must outlast so much: their
# life at a provider is often 300 s (Keycloak's default).
_LATE_S = 30.0


@dataclass(frozen=True, slots=True)
class Tls:
    """Verification of the server's certificate, and the client certificate."""

    verify: bool = True
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Destination of requests: scheme, host, port, and TLS for https."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    tls: Tls = Tls()

    @property
    def url(self) -> str:
        """The URL, with its port and without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits and time-outs of one plan."""

    max_connections: int = 256
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 30.0
    # From the start of an iteration; None: no limit. Steps marked `always` are also sent after it.
    iteration_timeout_s: float | None = None
    # Time for outstanding requests after the schedule's end.
    drain_s: float = 30.0
    # The same after a stop or at the end of `load_s`, if that is shorter; None: the same.
    stopped_drain_s: float | None = None
    # Limits that override the load: iterations started per second, and seconds of load.
    max_rate_rps: float | None = None
    load_s: float | None = None
    # The engine connects to loopback only; only the gate sets this to False, with the user's
    # permission.
    loopback_only: bool = True

    def tokens_last_s(self, load_s: float) -> float:
        """Return how long tokens must stay valid for a load of this duration that begins soon."""
        return load_s + min(self.drain_s, _LATE_S) + _MARGIN_S


@dataclass(frozen=True, slots=True)
class Placement:
    """Threads that send the load, each with its own connections and its part of the schedule.

    Thread t is bound to core `cores[t mod n]`; without cores the kernel chooses.
    """

    threads: int = 1
    cores: tuple[int, ...] = ()
    # Exactly this HTTP version. HTTP/1.1: a connection per iteration in flight; HTTP/2: one per
    # thread, with a stream per iteration in flight.
    http: Http = "1.1"
    # Whether a new connection resumes the TLS session of an earlier one. None: only if connections
    # are kept; a connection per iteration or request represents a new client with a full handshake.
    tls_resumption: bool | None = None
    # The part of the load that this engine sends (from 0), and the number of parts. Part p of k
    # sends iterations p, p + k, ... of the schedule. `max_rate_rps` limits all parts together, the
    # other limits apply to each part. A band cannot be divided.
    part: int = 0
    parts: int = 1

    @classmethod
    def on(
        cls, cores: tuple[int, ...], http: Http = "1.1", tls_resumption: bool | None = None
    ) -> "Placement":
        """Return one thread per core, each bound to it; without cores one unbound thread."""
        return cls(max(len(cores), 1), cores, http, tls_resumption)


@dataclass(frozen=True, slots=True)
class Plan:
    """One load, fully resolved: all that the engine needs."""

    origin: Origin
    steps: Steps
    load: Load
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    limits: Limits = Limits()
    # A connection is used as long as the server keeps it open, or for one iteration, or for one
    # request (with `Connection: close`). The handshakes of new connections count as latency.
    connection: Literal["kept", "iteration", "request"] = "kept"
    placement: Placement = Placement()
    seed: int = 0  # of the lengths of pauses, and of the mix
    # Weighted scripts, one of which an iteration takes; empty: all steps are one script.
    mix: tuple[WeightedScript, ...] = ()
    # Requests that are sent again on a new connection: those that the server cannot have read,
    # because it closed the kept connection first; or none, so that each close counts as a failure
    # (for measurements of faults).
    retries: Retries = "unread"
    # Values that an iteration takes for itself and gives back: the one that has been free longest,
    # under the name of a capture. What a step captures under that name is given back in its place.
    # If none is free, the iteration fails (NONE_FREE).
    chains: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    cookies: bool = False  # each iteration keeps its own, and begins without any
    trace: "Trace | None" = None  # requests that carry a `traceparent`; None: none

    @property
    def resumes_tls(self) -> bool | None:
        """Whether new connections resume TLS sessions; None without TLS."""
        if self.origin.scheme != "https":
            return None
        wanted = self.placement.tls_resumption
        return self.connection == "kept" if wanted is None else wanted

    def to_json(self) -> str:
        """Return the JSON for the Rust engine; it contains secrets (columns, chains)."""
        return json.dumps(asdict(self))
