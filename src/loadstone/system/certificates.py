"""Issues certificates (PEM) by an authority whose key is never stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self

from loadstone.errors import EnvironmentUnusable
from loadstone.system.installation import pip_install

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

LIFE = timedelta(days=365)
# Tolerance for clocks that are behind, which would refuse a new certificate.
LEEWAY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate and its key, as PEM."""

    certificate: str
    key: str = field(repr=False)

    @property
    def both(self) -> str:
        """Certificate and key in one text, as haproxy reads them."""
        return self.certificate + self.key


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates. Its key is not stored, so no further ones can be issued later."""

    _certificate: "Certificate"
    _key: "EllipticCurvePrivateKey" = field(repr=False)

    @classmethod
    def create(cls, name: str) -> Self:
        """Create an authority; EnvironmentUnusable without the package cryptography."""
        try:
            key = _new_key()
        except ImportError:
            raise EnvironmentUnusable(
                f"certificates need cryptography; install it: {pip_install('cryptography')}"
            ) from None
        return cls(_sign(name, key, key), key)

    @property
    def certificate(self) -> str:
        """The authority's own certificate, which clients trust."""
        return _pem(self._certificate)

    def issue(
        self, name: str, addresses: Sequence[str] = (), until: datetime | None = None
    ) -> IssuedCertificate:
        """Issue a certificate for IP addresses, valid for the 365 days before `until`.

        None: valid for 365 days from an hour ago.
        """
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        key = _new_key()
        issued = _sign(name, key, self._key, self._certificate, addresses, until)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return IssuedCertificate(_pem(issued), secret.decode("ascii"))


def _new_key() -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: "Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _sign(
    name: str,
    key: "EllipticCurvePrivateKey",
    signing_key: "EllipticCurvePrivateKey",
    authority: "Certificate | None" = None,
    addresses: Sequence[str] = (),
    until: datetime | None = None,
) -> "Certificate":
    """Sign a certificate; without an authority it is self-signed, as an authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    until = until or datetime.now(UTC) - LEEWAY + LIFE
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - LIFE)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
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
    if addresses:
        names = [x509.IPAddress(ip_address(address)) for address in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signing_key, hashes.SHA256())
