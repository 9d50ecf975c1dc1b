"""The client that load is sent as."""

from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from loadstone.errors import InvalidInput

VARIABLE = "LOADSTONE_OIDC_CLIENT_SECRET"
REDIRECT_URI = "http://127.0.0.1/callback"  # where logins lead back to; nothing is sent there


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the provider; without a secret, a public one."""

    id: str
    secret: str | None = field(default=None, repr=False)
    redirect_uri: str = REDIRECT_URI
    in_body: bool = False  # it authenticates in the body, not by HTTP Basic

    @property
    def header(self) -> str | None:
        """The value of the Authorization header (RFC 6749, 2.3.1); None if there is none."""
        if self.secret is None or self.in_body:
            return None
        pair = f"{quote(self.id, safe='')}:{quote(self.secret, safe='')}"
        return f"Basic {b64encode(pair.encode()).decode()}"

    @property
    def secrets(self) -> frozenset[str]:
        """The secret, and the form in which HTTP Basic has it; empty for a public client."""
        if self.secret is None:
            return frozenset()
        # Whether it is sent so is known once the provider has said what it offers.
        header = Client(self.id, self.secret).header or ""
        return frozenset({self.secret, header.removeprefix("Basic ")})

    @property
    def body(self) -> str:
        """What is added to the form of a request; empty with HTTP Basic."""
        if self.secret is None:
            return f"&client_id={quote(self.id, safe='')}"
        if self.in_body:
            secret = quote(self.secret, safe="")
            return f"&client_id={quote(self.id, safe='')}&client_secret={secret}"
        return ""


def read_secret(path: Path, option: str = "--client-secret-file") -> str:
    """Read the secret of a client, the first line of a file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            secret = file.readline(4096).strip()
    except OSError as problem:
        raise InvalidInput(f"{option} {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{option} {path}: not UTF-8") from None
    if not secret:
        raise InvalidInput(f"{option} {path}: its first line is empty")
    return secret
