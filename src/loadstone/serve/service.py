"""The reference service: Identity v3 in memory, optionally with an exactly known capacity."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from loadstone._engine import EngineUnusable
from loadstone._engine import serve as serve_in_rust
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system import yaml_file

TICK_S = 0.1  # interval of calling `goes_on`; Ctrl-C takes effect within it


class Law(StrEnum):
    """The distribution of service times."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    BURSTY = "bursty"  # hyperexponential, squared coefficient of variation 4


@dataclass(frozen=True, slots=True)
class Admin:
    """The first user, an administrator, with its password."""

    user: str
    password: str = field(repr=False)
    project: str


@dataclass(frozen=True, slots=True)
class FixedCapacity:
    """Workers behind one queue: exactly workers / service_s token requests a second."""

    workers: int
    service_s: float
    law: Law = Law.FIXED
    even_over: int = 0  # this many consecutive service times have exactly the mean; 0: random
    stall_every_s: float = 0.0
    stall_s: float = 0.0
    halve_at_s: float | None = None
    decline: float = 0.0  # share by which every 1,000 requests lengthen the service of the next
    collapse_above: int | None = None  # with more inside, requests take `collapse_by` times as long
    collapse_by: float = 1.0
    max_queue: int | None = None  # requests that may wait; further ones get a 503
    queue_timeout_s: float | None = None  # requests that wait longer get a 503
    seed: int = 1


class LimitMode(StrEnum):
    """Action of the rate limiter on a request without a token."""

    REFUSE = "refuse"  # 429 with Retry-After
    DELAY = "delay"


class LimitPer(StrEnum):
    """Scope of a token bucket."""

    SERVICE = "service"
    CONNECTION = "connection"
    USER = "user"


class OverConnections(StrEnum):
    """Action on a connection above the limit."""

    REFUSE = "refuse"  # the port is closed
    RESET = "reset"  # accepted, then reset
    WAIT = "wait"  # in the kernel's listen queue


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Token buckets of rate_rps * burst_s tokens, at least one."""

    rate_rps: float
    burst_s: float = 1.0
    mode: LimitMode = LimitMode.REFUSE
    per: LimitPer = LimitPer.SERVICE


@dataclass(frozen=True, slots=True)
class Lockout:
    """After `after` failed token requests within `lasts_s`, all are refused for `lasts_s`."""

    after: int
    lasts_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Connections:
    """A limit on open connections."""

    most: int
    over: OverConnections = OverConnections.REFUSE


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """OpenID Connect with one client, and the users that can log in."""

    client_id: str
    client_secret: str = field(repr=False)
    redirect_uri: str
    users: tuple[tuple[str, str], ...] = field(repr=False)  # names and passwords


class Scripted(StrEnum):
    """Kind of a scripted fault."""

    DARK = "dark"  # the port and all connections are closed
    SLOW = "slow"  # token requests take longer, by a factor
    REFUSE = "refuse"  # a share of token requests gets 503, evenly spread


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """A fault of the service, in seconds after its start."""

    kind: Scripted
    at_s: float
    lasts_s: float
    amount: float = 0.0  # the factor, or the share


# Wildcard address -> address at which a local client reaches it.
_REACHED = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 (listens nowhere)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Address, users, capacity and limits of the service."""

    admin: Admin
    host: str = "127.0.0.1"
    port: int = 0  # a free one
    threads: int = 1
    token_life_s: float = 3600.0
    max_tokens: int = 1_000_000
    only_errors: bool = False
    error_share: float = 0.0  # of the token requests, answered with 500 at any rate
    idle_timeout_s: float = 75.0  # of connections
    capacity: FixedCapacity | None = None
    limit: RateLimit | None = None
    lockout: Lockout | None = None
    connections: Connections | None = None
    oidc: OidcProvider | None = None  # beside the Identity API
    script: tuple[ScriptedFault, ...] = ()  # in the order of time, without overlap


def read_script(path: Path) -> tuple[ScriptedFault, ...]:
    """Read faults from YAML: a list of {at: 10, dark: 1}, {at: 20, slow: 3, for: 4}, ...

    Raises InvalidInput with the place of the first mistake.
    """
    file = yaml_file.read(path, "--script")
    if not isinstance(file.content, list) or not file.content:
        raise InvalidInput(f"{file.place()}: must be a list of faults, as - {{at: 10, dark: 1}}")
    return tuple(
        _scripted(row, f"{file.place(index)}: fault {index + 1}")
        for index, row in enumerate(file.content)
    )


def _scripted(row: object, place: str) -> ScriptedFault:
    if not isinstance(row, dict):
        raise InvalidInput(f"{place}: must be like {{at: 10, dark: 1}}, not {row!r}")
    kinds = [kind for kind in Scripted if kind in row]
    if len(kinds) != 1:
        raise InvalidInput(f"{place}: must have one of {', '.join(Scripted)}")
    kind = kinds[0]
    wanted = {"at", kind.value} | ({"for"} if kind is not Scripted.DARK else set())
    if set(row) != wanted:
        raise InvalidInput(f"{place}: must have {', '.join(sorted(wanted))}, and nothing else")
    values = [row[name] for name in wanted]
    if not all(type(one) in (int, float) and abs(one) <= sys.float_info.max for one in values):
        raise InvalidInput(f"{place}: {', '.join(sorted(wanted))} must be numbers")
    if kind is Scripted.DARK:
        return ScriptedFault(kind, row["at"], row["dark"])
    return ScriptedFault(kind, row["at"], row["for"], row[kind.value])


def environment_variables(settings: ServiceSettings, port: int) -> dict[str, str]:
    """Return the OS_* variables that a client needs; the password is among them."""
    return {
        "OS_AUTH_URL": f"{_base(settings, port)}/v3",
        "OS_USERNAME": settings.admin.user,
        "OS_PASSWORD": settings.admin.password,
        "OS_PROJECT_NAME": settings.admin.project,
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
        "OS_IDENTITY_API_VERSION": "3",
        "OS_REGION_NAME": "RegionOne",
    }


def oidc_variables(settings: ServiceSettings, port: int) -> dict[str, str]:
    """Return the variables that a client of OpenID Connect needs; a secret is among them."""
    if settings.oidc is None:
        return {}
    return {
        "LOADSTONE_OIDC_ISSUER": _base(settings, port),
        "LOADSTONE_OIDC_CLIENT_ID": settings.oidc.client_id,
        "LOADSTONE_OIDC_CLIENT_SECRET": settings.oidc.client_secret,
    }


def _base(settings: ServiceSettings, port: int) -> str:
    reached = _REACHED.get(settings.host, settings.host)
    host = f"[{reached}]" if ":" in reached else reached
    return f"http://{host}:{port}"


def serve(
    settings: ServiceSettings,
    ready: Callable[[int], object],
    goes_on: Callable[[], bool] = lambda: True,
) -> str:
    """Serve until `goes_on` returns False, or Ctrl-C; `ready` is called with the port.

    Returns JSON with the counts of requests (by method and path) and of responses (by status).
    """
    try:
        return serve_in_rust(json.dumps(asdict(settings)), ready, goes_on, TICK_S)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    except EngineUnusable as error:
        raise EnvironmentUnusable(f"{error}; choose another address with --host, --port") from None
