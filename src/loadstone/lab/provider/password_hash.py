"""The hash of passwords that a provider is set to, and the one that it has stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# Keycloak 26: argon2id with 7 MiB and one thread; PBKDF2 as OWASP recommends
# (www.keycloak.org/docs/latest/server_admin/#_password-policies).
USUAL_ITERATIONS = {"argon2": 5, "pbkdf2-sha256": 600_000, "pbkdf2-sha512": 210_000}
ARGON2_MEMORY_KIB = 7168


class Algorithm(StrEnum):
    """A password hash that the lab can choose."""

    ARGON2 = "argon2"
    PBKDF2_SHA256 = "pbkdf2-sha256"
    PBKDF2_SHA512 = "pbkdf2-sha512"


def scrypt_in_words(n: int) -> str:
    """Return the words for the hash of a login page: scrypt of this cost, or none."""
    return f"scrypt, N={n}" if n else "none"


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """An algorithm and its cost."""

    algorithm: str
    iterations: int
    memory_kib: int | None = None  # of argon2

    def __str__(self) -> str:
        memory = f", {self.memory_kib} KiB" if self.memory_kib is not None else ""
        return f"{self.algorithm}, {self.iterations} iterations{memory}"

    @classmethod
    def chosen(cls, algorithm: Algorithm | None, iterations: int | None) -> "PasswordHash":
        """Return the hash of two settings; absent ones are Keycloak's defaults."""
        name = algorithm or Algorithm.ARGON2
        memory = ARGON2_MEMORY_KIB if name is Algorithm.ARGON2 else None
        return cls(name.value, iterations or USUAL_ITERATIONS[name.value], memory)

    @classmethod
    def stored(cls, credential: Mapping[str, Any]) -> "PasswordHash":
        """Return the hash that the `credentialData` of a stored credential describes."""
        memory = (credential.get("additionalParameters") or {}).get("memory")
        return cls(
            str(credential["algorithm"]),
            int(credential["hashIterations"]),
            int(memory[0]) if memory else None,
        )

    @property
    def policy(self) -> str:
        """The realm's password policy; that of argon2 is empty.

        A policy that gives argon2 another number of iterations makes Keycloak store each password
        anew at each login, so its cost is an option of the server instead.
        """
        if self.algorithm == Algorithm.ARGON2:
            return ""
        return f"hashAlgorithm({self.algorithm}) and hashIterations({self.iterations})"

    @property
    def server_options(self) -> dict[str, str]:
        """Environment variables of the server."""
        if self.algorithm != Algorithm.ARGON2:
            return {}
        prefix = "KC_SPI_PASSWORD_HASHING__ARGON2__"
        return {
            f"{prefix}ITERATIONS": str(self.iterations),
            f"{prefix}MEMORY": str(self.memory_kib),
        }
