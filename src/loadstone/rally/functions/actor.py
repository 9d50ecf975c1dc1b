"""The users and cloud settings of a call plan."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from loadstone.cloud import Access
from loadstone.keystone.resources import User


def rows(
    users: Sequence[User], networks: Mapping[str, Sequence[str]] | None = None
) -> tuple[dict[str, str], ...]:
    """Return the users as rows of a call plan, with the ids of their projects' networks."""
    return tuple(
        asdict(user)
        | {
            "project_domain_name": user.project_domain_name or user.domain_name,
            "networks": " ".join((networks or {}).get(user.project_id, ())),
        }
        for user in users
    )


def settings(access: Access, prefix: str, *, logs_in_anew: bool = False) -> dict[str, str]:
    """Return the cloud settings for functions; names of created resources start with `prefix`.

    `logs_in_anew`: each iteration issues a token of its own.
    """
    tls = access.cloud.tls
    values = {
        "auth_url": access.identity_url,
        "prefix": prefix,
        "region": access.cloud.region,
        "interface": access.cloud.interface,
        "insecure": None if tls.verify else "yes",
        "ca_file": tls.ca_file,
        "cert_file": tls.cert_file,
        "key_file": tls.key_file,
        "logs_in_anew": "yes" if logs_in_anew else None,
    }
    return {name: value for name, value in values.items() if value is not None}
