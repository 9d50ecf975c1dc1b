"""Certificates of a fleet: one authority, and one certificate that all its hosts and clients show.

Mutual TLS: who has no certificate of the authority is refused by scheduler, workers and client.
Dask checks the authority and not the name in the certificate.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import files
from loadstone.engine.fleet.address import CA, CERTIFICATE, KEY
from loadstone.errors import EnvironmentUnusable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

LIFE = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority's certificate, and a certificate with its key, as PEM."""

    ca: str
    certificate: str
    key: str = field(repr=False)


def make(folder: Path) -> None:
    """Make ca.pem, certificate.pem and key.pem; only the owner may read the folder."""
    made = create()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write(folder / KEY, made.key, 0o600)
    files.write(folder / CA, made.ca)
    files.write(folder / CERTIFICATE, made.certificate)


def create() -> Certificates:
    """Return certificates of a new authority.

    The authority's key is forgotten: no further certificate can be made.
    """
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
    except ImportError:
        raise EnvironmentUnusable(
            "certificates need cryptography; install it: pip install 'loadstone[fleet]'"
        ) from None
    authority_key, key = _key(), _key()
    authority = _certificate("Loadstone fleet authority", authority_key, None, authority_key)
    member = _certificate("Loadstone fleet", key, authority, authority_key)
    return Certificates(
        authority.public_bytes(Encoding.PEM).decode("ascii"),
        member.public_bytes(Encoding.PEM).decode("ascii"),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii"),
    )


def _key() -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _certificate(
    name: str,
    key: "EllipticCurvePrivateKey",
    authority: "Certificate | None",
    authority_key: "EllipticCurvePrivateKey",
) -> "Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A clock that is an hour behind must not refuse it.
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=authority is None,
                crl_sign=authority is None,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    return builder.sign(authority_key, hashes.SHA256())
