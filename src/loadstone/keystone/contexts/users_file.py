"""Reads existing users from a file: Rally's env spec, or just its list of users."""

from collections.abc import Mapping
from pathlib import Path

from loadstone import yaml_file
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind, User
from loadstone.target import Access

_DOMAIN = "Default"  # Rally's


def given_users(path: Path) -> tuple[Mapping[str, str], ...]:
    """Read the file. InvalidInput names what is wrong in it, never a password."""
    found = yaml_file.read(path, is_secret=True)
    for key in ("existing@openstack", "openstack", "users"):
        found = found.get(key, found) if isinstance(found, dict) else found
    if not isinstance(found, list) or not found:
        raise InvalidInput(f"{path}: has no list of users (users: [{{username: ..., ...}}])")
    return tuple(_checked(one, f"{path}: user {number}") for number, one in enumerate(found, 1))


def _checked(one: object, place: str) -> Mapping[str, str]:
    if not isinstance(one, dict):
        raise InvalidInput(f"{place}: must be a mapping with username, password, project_name")
    known: dict[str, str] = {"project_domain_name": _DOMAIN, "user_domain_name": _DOMAIN} | one
    known.setdefault("project_name", one.get("tenant_name", ""))
    for key in ("username", "password", "project_name", "project_domain_name", "user_domain_name"):
        if not isinstance(known.get(key), str) or not known[key]:
            raise InvalidInput(f"{place}: {key} must be a text")
    return known


def existing_users(access: Access, entries: tuple[Mapping[str, str], ...]) -> tuple[User, ...]:
    """Look up the users and their projects in the cloud as the administrator."""
    identity = Identity(access)
    names = {one[key] for one in entries for key in ("project_domain_name", "user_domain_name")}
    domains = {name: identity.domain(name) for name in names}
    projects: dict[tuple[str, str], str] = {}
    users = []
    for one in entries:
        domain, home = domains[one["user_domain_name"]], domains[one["project_domain_name"]]
        place = (str(home.id), one["project_name"])
        if place not in projects:
            projects[place] = _id_of(identity, ResourceKind.PROJECT, *place)
        users.append(
            User(
                id=_id_of(identity, ResourceKind.USER, str(domain.id), one["username"]),
                name=one["username"],
                password=one["password"],
                project_id=projects[place],
                project_name=one["project_name"],
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
