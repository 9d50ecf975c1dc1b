"""Existing users of the target, for runs that create nothing in the cloud."""

from collections.abc import Iterable, Mapping, Sequence

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind, User


def own_user(access: Access) -> User:
    """Return the target's own identity; it must have a password and a project."""
    if (auth := access.login) is None:
        raise InvalidInput(f"{access.cloud.chosen}: {access.cloud.who} cannot log in")
    granted = auth.get_access(access.session)
    try:
        known = auth.get_cache_id_elements()
    except NotImplementedError:  # it logs in at an identity provider
        known = {}
    # The generic plugin names it "password", the v3 plugin "password_password" (keystoneauth1).
    password = known.get("password") or known.get("password_password")
    if not password or not granted.project_id:
        raise InvalidInput(
            f"{access.cloud.chosen}: {access.cloud.who} has no password and project to log in "
            "with; let users be made (--users 1 or more), or choose a user with both"
        )
    return User(
        id=str(granted.user_id),
        name=str(granted.username),
        password=password,
        project_id=granted.project_id,
        project_name=str(granted.project_name),
        domain_id=str(granted.user_domain_id),
        domain_name=str(granted.user_domain_name),
        project_domain_name=granted.project_domain_name,
    )


def directory_users(access: Access, entries: Sequence[Mapping[str, str]]) -> tuple[User, ...]:
    """Return the users of a domain that is read-only in Keystone, from their OS_* variables."""
    if not entries:
        return ()
    identity = Identity(access)
    domain_id = entries[0]["OS_USER_DOMAIN_ID"]
    domain = identity.domain(domain_id)
    names = {one["OS_USERNAME"] for one in entries}
    ids = {one.name: str(one.id) for one in identity.find(ResourceKind.USER, domain_id=domain_id)}
    # A list may be cut short ([DEFAULT] list_limit).
    ids |= _ids(identity, ResourceKind.USER, names - ids.keys(), domain_id)
    project_names = {one["OS_PROJECT_NAME"] for one in entries}
    projects = _ids(identity, ResourceKind.PROJECT, project_names, domain_id)
    return tuple(
        User(
            id=ids[one["OS_USERNAME"]],
            name=one["OS_USERNAME"],
            password=one["OS_PASSWORD"],
            project_id=projects[one["OS_PROJECT_NAME"]],
            project_name=one["OS_PROJECT_NAME"],
            domain_id=domain_id,
            domain_name=domain.name,
        )
        for one in entries
    )


def _ids(
    identity: Identity, kind: ResourceKind, names: Iterable[str], domain_id: str
) -> dict[str, str]:
    """Return the ids of these names; EnvironmentUnusable if one of them is missing."""
    found = {}
    for name in names:
        for one in identity.find(kind, domain_id=domain_id, name=name):
            found[one.name] = str(one.id)
        if name not in found:
            raise EnvironmentUnusable(
                f"{identity.access.identity_url}: has no {kind} {name!r}, which the lab was "
                "started with; remove the lab (lab down --purge) and start it again"
            )
    return found
