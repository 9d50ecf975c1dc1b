"""What a call plan carries of users and their cloud."""

from collections.abc import Sequence
from dataclasses import asdict

from loadstone.keystone.things import User
from loadstone.target import Access


def rows(users: Sequence[User]) -> tuple[dict[str, str], ...]:
    """Give the users as rows of a call plan."""
    home = "project_domain_name"
    return tuple(asdict(user) | {home: getattr(user, home) or user.domain_name} for user in users)


def settings(access: Access, prefix: str) -> dict[str, str]:
    """Give what functions must know of a cloud; names of what they make begin with `prefix`."""
    tls = access.cloud.tls
    given = {
        "auth_url": access.identity_url,
        "prefix": prefix,
        "region": access.cloud.region,
        "insecure": None if tls.verify else "yes",
        "ca_file": tls.ca_file,
        "cert_file": tls.cert_file,
        "key_file": tls.key_file,
    }
    return {name: value for name, value in given.items() if value is not None}
