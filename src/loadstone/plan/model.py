"""The plan: a value that can be stored, compared, sent to a worker and run again."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from loadstone.plan.load import Load
from loadstone.plan.script import Steps, WeightedScript

Http = Literal["1.1", "2"]
Retries = Literal["unread", "never"]


@dataclass(frozen=True, slots=True)
class Tls:
    """How the server's certificate is checked and which one we show."""

    verify: bool = True
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where requests go: scheme, host, port, and TLS for https."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    tls: Tls = Tls()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one plan may use, and how long it waits."""

    max_connections: int = 256
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 30.0
    # From the moment that an iteration is taken up; None: without end. Steps that are always done
    # are done after it, too.
    iteration_timeout_s: float | None = None
    # After the schedule's end: how long outstanding requests may still take.
    drain_s: float = 30.0
    # Whatever the load asks for: iterations that begin per second at most, and for how long.
    max_rate_rps: float | None = None
    load_s: float | None = None
    # The engine dials no address beyond loopback; only the gate clears it, at the user's word.
    loopback_only: bool = True


@dataclass(frozen=True, slots=True)
class Placement:
    """Which threads send the load, each with its own connections and its part of the schedule.

    Thread t is bound to core `cores[t mod n]`; without cores the kernel chooses.
    """

    threads: int = 1
    cores: tuple[int, ...] = ()
    # What connections speak, never another version than this: a connection for each iteration in
    # flight, or one a thread, whose streams carry all that are in flight.
    http: Http = "1.1"
    # Whether a new connection resumes the TLS session of an earlier one. None: where connections
    # are kept; a connection for each iteration or request stands for a new client, and makes a full
    # handshake.
    tls_resumption: bool | None = None
    # Which part of the load this engine sends (from 0), of how many. Part p of k sends iterations
    # p, p + k, ... of the schedule. `max_rate_rps` is the limit of all parts together, the other
    # limits are each part's own. A band cannot be divided.
    part: int = 0
    parts: int = 1

    @classmethod
    def on(
        cls, cores: tuple[int, ...], http: Http = "1.1", tls_resumption: bool | None = None
    ) -> "Placement":
        """Put a thread on each of these cores; without any, one thread anywhere."""
        return cls(max(len(cores), 1), cores, http, tls_resumption)


@dataclass(frozen=True, slots=True)
class Plan:
    """One stretch of load, fully resolved: all that the engine needs."""

    origin: Origin
    steps: Steps
    load: Load
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    limits: Limits = Limits()
    # A connection carries requests as long as the server keeps it, or those of one iteration, or
    # one (which announces `Connection: close`); a new one costs its handshakes, as latency.
    connection: Literal["kept", "iteration", "request"] = "kept"
    placement: Placement = Placement()
    seed: int = 0  # of the lengths of pauses, and of the mix
    # Which of the steps an iteration takes; empty: all of them, they are one script.
    mix: tuple[WeightedScript, ...] = ()
    # Which requests are sent a second time, on a fresh connection: those that the server cannot
    # have read, since it closed the kept connection first; or none, so that each close counts as a
    # failure (for measurements of faults).
    retries: Retries = "unread"

    @property
    def resumes_tls(self) -> bool | None:
        """Whether new connections resume TLS sessions; None without TLS."""
        if self.origin.scheme != "https":
            return None
        wanted = self.placement.tls_resumption
        return self.connection == "kept" if wanted is None else wanted

    def to_json(self) -> str:
        """Return the form in which the plan crosses to Rust; it holds secrets (columns)."""
        return json.dumps(asdict(self))

    def without_secrets(self) -> "Plan":
        """Return the plan as it may be kept: of each column only its length."""
        return replace(
            self, columns={name: (f"{len(v)} values",) for name, v in self.columns.items()}
        )
