"""A cloud as the user named it, before any request."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, cast
from urllib.parse import urlsplit

from loadstone.plan.model import Origin, Tls

if TYPE_CHECKING:
    from keystoneauth1.plugin import BaseAuthPlugin


_LOOPBACK = ("localhost", "::1")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An http(s) URL in parts; `host` has no brackets, `path` no trailing slash."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse a URL; ValueError says what is wrong."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"}:
            raise ValueError("it must begin with http:// or https://")
        if not parts.hostname:
            raise ValueError("it names no host")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("it must be only scheme, host, port and path")
        if parts.port == 0:
            raise ValueError("its port must be from 1 to 65535")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        scheme = cast('Literal["http", "https"]', parts.scheme)
        return cls(scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def place(self) -> str:
        """HOST:PORT, which is the same for all URLs of one service on this machine."""
        host = self.host.lower().strip("[]").rstrip(".")
        return f"{'127.0.0.1' if host in _LOOPBACK else host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL, with its port."""
        return f"{Origin(self.scheme, self.host, self.port).url}{self.path}"

    def origin(self, tls: Tls) -> Origin:
        """Return where the engine sends requests."""
        return Origin(self.scheme, self.host, self.port, tls)


@dataclass(frozen=True, slots=True)
class Cloud:
    """An identity service and the credentials to prepare it; created by cloud/read.py and labs."""

    chosen: str  # how the user chose it: "--lab demo", "--cloud prod", "OS_*"
    auth_url: str
    endpoint: Endpoint  # of auth_url
    who: str  # "user admin", for messages
    auth: "BaseAuthPlugin" = field(repr=False, compare=False)  # contains the credentials
    tls: Tls = field(default_factory=Tls)  # its paths are files that can be read
    region: str | None = None
    interface: str = "public"  # of other services: which of their URLs in the catalog is used
    overrides: frozenset[str] = frozenset()  # settings such as compute_endpoint_override: not used
    # Where a project or domain could be given, if none is: "OS_PROJECT_NAME (or a domain, ...)".
    missing_scope: str = ""
    # Values that log in, and that nothing may show or keep.
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def lacks_role(self, purpose: str) -> str:
        """Say why the identity may not do something for which it needs the role admin."""
        needed = f"{self.who} needs the role admin {purpose}"
        if self.missing_scope:
            return f"{needed}, but no project is chosen: {self.missing_scope} is missing"
        return needed
