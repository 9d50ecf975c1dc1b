"""Certificates of a fleet: one authority, and one certificate that all its hosts and clients show.

Mutual TLS: scheduler, workers and client refuse peers without a certificate of the authority. Dask
checks the authority, not the name in the certificate.
"""

from pathlib import Path

from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY, Certificates
from loadstone.errors import EnvironmentUnusable
from loadstone.system import files
from loadstone.system.certificates import Authority


def make(folder: Path) -> None:
    """Write new ca.pem, certificate.pem and key.pem; only the owner may read the folder.

    Raises EnvironmentUnusable if they cannot be written.
    """
    certificates = create()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise EnvironmentUnusable(
            f"{folder} cannot be created: {problem.strerror}; choose another folder with "
            "--fleet-certificates"
        ) from None
    files.write(folder / CA, certificates.ca)
    files.write(folder / CERTIFICATE, certificates.certificate)
    # Last: a folder with a key has all three.
    files.write(folder / KEY, certificates.key, 0o600)


def create() -> Certificates:
    """Return certificates of a new authority; no further certificate can be made."""
    authority = Authority.create("Loadstone fleet authority")
    issued = authority.issue("Loadstone fleet")
    return Certificates(authority.certificate, issued.certificate, issued.key)
