"""Address of a fleet: `local:4`, a Dask scheduler, or a file of ssh hosts."""

import os
import re
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from loadstone.cloud.permission import is_loopback
from loadstone.engine.fleet import hosts_file
from loadstone.engine.fleet.hosts_file import SshFleet
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system import paths
from loadstone.system.installation import pip_install

MOST_LOCAL = 64
CA, CERTIFICATE, KEY = "ca.pem", "certificate.pem", "key.pem"


@dataclass(frozen=True, slots=True)
class LocalFleet:
    """Worker processes on this machine for one run."""

    count: int

    def __str__(self) -> str:
        return f"local:{self.count}"


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority's certificate, and a certificate with its key, as PEM."""

    ca: str
    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """A Dask scheduler; a `certificates` folder has ca.pem, certificate.pem and key.pem."""

    url: str
    certificates: Path | Certificates | None  # None: without TLS
    title: str = ""  # for messages; empty: its URL
    workers: frozenset[str] = frozenset()  # addresses of workers that send load; empty: all

    def __str__(self) -> str:
        return self.title or self.url


FleetAddress = LocalFleet | SchedulerAddress | SshFleet


def require_installed() -> None:
    """Raise EnvironmentUnusable without Dask distributed."""
    if find_spec("distributed") is None:
        raise _missing()


def certificates() -> Path:
    """Return the folder of the certificates created by `loadstone fleet up`."""
    return paths.home() / "fleet"


def read(text: str, folder: Path | None = None, *, without_tls: bool = False) -> FleetAddress:
    """Parse a `--fleet` value; InvalidInput if it is none."""
    if match := re.fullmatch(r"local:(\d{1,4})", text):
        count = int(match[1])
        if not 1 <= count <= MOST_LOCAL:
            raise InvalidInput(f"--fleet {text}: choose 1 to {MOST_LOCAL} processes")
        return LocalFleet(count)
    if text.endswith((".yaml", ".yml")):
        return hosts_file.read(Path(text))
    text = text.rstrip("/")  # which Dask takes for a part of the port
    try:
        url = urlsplit(text)
        scheme, host, port = url.scheme, url.hostname, url.port
    except ValueError:
        scheme, host, port = "", None, None
    if "@" in text:
        raise InvalidInput("--fleet: no user or password in the address; write tls://HOST:8786")
    if scheme not in {"tls", "tcp"} or not host or not port:
        raise InvalidInput(
            f"--fleet {text}: write local:4, or tls://HOST:8786 of a Dask scheduler, or a file of "
            "hosts (fleet.yaml)"
        )
    if scheme == "tls":
        return SchedulerAddress(text, usable(folder or certificates()))
    if not without_tls and not is_loopback(host, port):
        raise InvalidInput(
            f"--fleet {text}: whoever reaches a scheduler without TLS can run programs on all of "
            "its hosts; use tls://, or say --fleet-without-tls"
        )
    return SchedulerAddress(text, None)


def usable(folder: Path) -> Path:
    """Return a folder of certificates; InvalidInput if one of them is missing or has expired."""
    names = (CA, CERTIFICATE, KEY)
    # `isfile` answers for a folder that may not be entered, too.
    missing = [name for name in names if not os.path.isfile(folder / name)]
    if len(missing) == len(names):
        raise InvalidInput(
            f"{folder / CA} is missing; `loadstone fleet up` makes it, and "
            "--fleet-certificates names another folder"
        )
    if missing:
        raise InvalidInput(
            f"{folder / missing[0]} is missing, and others are there; copy all of "
            f"{', '.join(names)} from another host of the fleet, or delete {folder}, and "
            "`loadstone fleet up` makes new ones"
        )
    for name in (CA, CERTIFICATE):
        _require_valid(folder / name)
    return folder


def _require_valid(path: Path) -> None:
    try:
        from cryptography.x509 import load_pem_x509_certificate
    except ImportError:
        raise _missing() from None
    try:
        ends = load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a certificate in PEM form"
        raise InvalidInput(f"{path} cannot be used: {why}") from None
    if ends < datetime.now(UTC):
        raise InvalidInput(
            f"{path} expired on {ends:%Y-%m-%d}; end the fleet on all hosts (`loadstone fleet "
            f"down`), delete {path.parent}, and `loadstone fleet up` makes new certificates"
        )


def require_own(address: str, where: str) -> None:
    """Raise EnvironmentUnusable, beginning with `where`, if no server can listen at an address."""
    try:
        found = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)
        family, kind, protocol, _, at = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(at)
    except (OSError, UnicodeError) as error:  # no name: an empty label, or one too long
        why = getattr(error, "strerror", None) or "not a name of a host"
        raise EnvironmentUnusable(
            f"{where} is none of this machine's addresses ({why}); write the one at "
            "which the hosts reach it"
        ) from None


def _missing() -> EnvironmentUnusable:
    command = pip_install("distributed", "cryptography")
    return EnvironmentUnusable(f"a fleet needs Dask distributed; install it: {command}")
