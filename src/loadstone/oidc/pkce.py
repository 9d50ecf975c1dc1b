"""Proof keys for code exchange (RFC 7636)."""

import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class ProofKey:
    """A verifier and its challenge, by the method S256."""

    verifier: str = field(repr=False)
    challenge: str

    @classmethod
    def make(cls) -> "ProofKey":
        """Return a new one."""
        verifier = secrets.token_urlsafe(32)
        digest = sha256(verifier.encode()).digest()
        return cls(verifier, urlsafe_b64encode(digest).decode().rstrip("="))
