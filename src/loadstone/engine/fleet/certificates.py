"""Certificates of a fleet: one authority, and one certificate that all its hosts and clients show.

Mutual TLS: who has no certificate of the authority is refused by scheduler, workers and client.
Dask checks the authority and not the name in the certificate.
"""

from pathlib import Path

from loadstone import files
from loadstone.certificates import Authority
from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY, Certificates


def make(folder: Path) -> None:
    """Make ca.pem, certificate.pem and key.pem; only the owner may read the folder."""
    made = create()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write(folder / KEY, made.key, 0o600)
    files.write(folder / CA, made.ca)
    files.write(folder / CERTIFICATE, made.certificate)


def create() -> Certificates:
    """Return certificates of a new authority; no further certificate can be made."""
    authority = Authority.create("Loadstone fleet authority")
    issued = authority.issue("Loadstone fleet")
    return Certificates(authority.certificate, issued.certificate, issued.key)
