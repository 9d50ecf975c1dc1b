"""Certificates of a deployment that serves over TLS: a valid and an expired one; a client's."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.ports import HOST
from loadstone.system import files
from loadstone.system.certificates import Authority

CA = "ca.pem"
CLIENT = "admin"  # name in the client's certificate
EXPIRED_AGO = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ServerCertificates:
    """Paths of the certificates of a deployment.

    Certificates with their keys are in the private folder; the CA's certificate is public.
    """

    folder: Path  # of the deployment

    @property
    def ca(self) -> Path:
        """The authority's certificate, which clients trust."""
        return self.folder / CA

    @property
    def valid(self) -> Path:
        """Certificate and key that are served."""
        return state.secret_folder(self.folder) / "certificate.pem"

    @property
    def expired(self) -> Path:
        """Certificate and key of the same authority that expired a day ago."""
        return state.secret_folder(self.folder) / "expired-certificate.pem"

    @property
    def client(self) -> Path:
        """Certificate and key of a client, for the administrator's name."""
        return state.secret_folder(self.folder) / "client-certificate.pem"

    def make(self) -> None:
        """Create all certificates anew; EnvironmentUnusable without the package cryptography."""
        authority = Authority.create("Loadstone lab authority")
        name = f"Loadstone lab {self.folder.name}"
        until = datetime.now(UTC) - EXPIRED_AGO
        files.write(self.ca, authority.certificate)
        state.write_secret(self.valid, authority.issue(name, (HOST,)).both)
        state.write_secret(self.expired, authority.issue(name, (HOST,), until).both)
        state.write_secret(self.client, authority.issue(CLIENT).both)
