"""`loadstone serve --oidc` with users, as a process of its own."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from known_service import serving

from loadstone.oidc.client import Client
from loadstone.oidc.provider import Provider
from loadstone.oidc.target import OidcIssuer, connected

CLIENT_ID, SECRET = "load", "the secret: a+b%"
USERS = "username,password\nann,her&pw=1\nbob,his pw\n"


@dataclass(frozen=True)
class OidcService:
    """A running provider."""

    port: int
    users: Path

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def counts(self) -> dict[str, Any]:
        answer: dict[str, Any] = requests.get(f"{self.issuer}/loadstone/counts", timeout=30).json()
        return answer

    def choice(self, client: Client | None = None, users: Path | None = None) -> OidcIssuer:
        return OidcIssuer(self.issuer, client or Client(CLIENT_ID, SECRET), users or self.users)

    @contextlib.contextmanager
    def connected(self, client: Client | None = None) -> Iterator[Provider]:
        with connected(self.choice(client)) as provider:
            yield provider


@contextlib.contextmanager
def oidc_service(folder: Path, *options: str) -> Iterator[OidcService]:
    users = folder / "users.csv"
    users.write_text(USERS)
    given = ("--oidc", f"--client-id={CLIENT_ID}", f"--oidc-users={users}", *options)
    with (
        environment({"LOADSTONE_OIDC_CLIENT_SECRET": SECRET}),
        serving(*given) as (port, _),
    ):
        yield OidcService(port, users)


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables of this process, which the service inherits, until the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield
