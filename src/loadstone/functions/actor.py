"""The users and cloud settings in a call plan."""

from collections.abc import Sequence
from dataclasses import asdict

from loadstone.keystone.resources import User
from loadstone.target import Access


def rows(users: Sequence[User]) -> tuple[dict[str, str], ...]:
    """Return the users as rows of a call plan."""
    home = "project_domain_name"
    return tuple(asdict(user) | {home: getattr(user, home) or user.domain_name} for user in users)


def settings(access: Access, prefix: str) -> dict[str, str]:
    """Return the cloud settings for functions; names of created resources start with `prefix`."""
    tls = access.cloud.tls
    values = {
        "auth_url": access.identity_url,
        "prefix": prefix,
        "region": access.cloud.region,
        "insecure": None if tls.verify else "yes",
        "ca_file": tls.ca_file,
        "cert_file": tls.cert_file,
        "key_file": tls.key_file,
    }
    return {name: value for name, value in values.items() if value is not None}
