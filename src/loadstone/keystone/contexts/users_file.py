"""Reads existing users from a file: Rally's env spec, or only its list of users."""

from collections.abc import Mapping
from pathlib import Path

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind, User
from loadstone.system import yaml_file

_DOMAIN = "Default"  # Rally's


def read_users(path: Path) -> tuple[Mapping[str, str], ...]:
    """Read the users of a file; InvalidInput names the mistake, never a password."""
    file = yaml_file.read(path, is_secret=True)
    users, keys = file.content, list[str]()
    for key in ("existing@openstack", "openstack", "users"):
        if isinstance(users, dict) and key in users:
            users = users[key]
            keys.append(key)
    if not isinstance(users, list) or not users:
        raise InvalidInput(
            f"{file.place(*keys)}: has no list of users (users: [{{username: ..., ...}}])"
        )
    return tuple(
        _checked(user, f"{file.place(*keys, index)}: user {index + 1}")
        for index, user in enumerate(users)
    )


def _checked(entry: object, place: str) -> Mapping[str, str]:
    if not isinstance(entry, dict):
        raise InvalidInput(f"{place}: must be a mapping with username, password, project_name")
    user: dict[str, str] = {"project_domain_name": _DOMAIN, "user_domain_name": _DOMAIN} | entry
    user.setdefault("project_name", entry.get("tenant_name", ""))
    for key in ("username", "password", "project_name", "project_domain_name", "user_domain_name"):
        if not isinstance(user.get(key), str) or not user[key]:
            raise InvalidInput(f"{place}: {key} must be a text")
    return user


def existing_users(access: Access, entries: tuple[Mapping[str, str], ...]) -> tuple[User, ...]:
    """Look up the users and their projects in the cloud as the administrator."""
    identity = Identity(access)
    names = {entry[key] for entry in entries for key in ("project_domain_name", "user_domain_name")}
    domains = {name: identity.domain(name) for name in names}
    projects: dict[tuple[str, str], str] = {}
    users = []
    for entry in entries:
        domain, home = domains[entry["user_domain_name"]], domains[entry["project_domain_name"]]
        place = (str(home.id), entry["project_name"])
        if place not in projects:
            projects[place] = _id_of(identity, ResourceKind.PROJECT, *place)
        users.append(
            User(
                id=_id_of(identity, ResourceKind.USER, str(domain.id), entry["username"]),
                name=entry["username"],
                password=entry["password"],
                project_id=projects[place],
                project_name=entry["project_name"],
                domain_id=str(domain.id),
                domain_name=domain.name,
                project_domain_name=home.name,
            )
        )
    return tuple(users)


def _id_of(identity: Identity, kind: ResourceKind, domain_id: str, name: str) -> str:
    for found in identity.find(kind, domain_id=domain_id, name=name):
        return str(found.id)
    raise EnvironmentUnusable(
        f"{identity.access.identity_url}: has no {kind.value} {name!r} in domain {domain_id}"
    )
