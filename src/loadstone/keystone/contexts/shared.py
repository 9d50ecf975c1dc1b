"""Makes what the users of a run share before its load: groups with roles, a tree of projects."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from loadstone.errors import InvalidInput
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import (
    ANY,
    ResourceKind,
    User,
    domain_name,
    resource_name,
    tree_name,
)
from loadstone.keystone.scenarios.model import GROUPS, TREE_PROJECTS, Need
from loadstone.system.concurrently import each
from loadstone.system.say import Say

_ROLES = 10  # each granted to every tenth group
_IMPLIED = "member"
_BRANCHES = 10  # projects directly below each project
_WORKERS = 8


def with_shared(
    identity: Identity, users: Sequence[User], needs: Iterable[Need], journal: Journal, say: Say
) -> tuple[User, ...]:
    """Return the users, each with what a scenario needs of these.

    Raises InvalidInput if the users are in a domain that outlives the run.
    """
    wanted = {need: _MAKERS[need] for need in needs if need in _MAKERS}
    own = domain_name(journal.run_id)
    for need in wanted:
        if any(user.domain_name != own for user in users):
            raise InvalidInput(
                f"{need} are made in a domain of the run, and these users are in another; leave "
                "out user_domain"
            )
    made: dict[str, str] = {}
    for make in wanted.values():
        made |= make(identity, users, journal, say)
    return tuple(replace(user, credentials={**user.credentials, **made}) for user in users)


def _groups(
    identity: Identity, users: Sequence[User], journal: Journal, say: Say
) -> Mapping[str, str]:
    """Put each user into the groups, which have roles in the users' projects.

    The roles are of the users' domain, and each implies a role that tokens show.
    """
    domain, run_id = users[0].domain_id, journal.run_id
    say(f"creating {_ROLES} roles and {GROUPS} groups")
    # Keystone keeps the roles of a domain that is removed.
    journal.create(ResourceKind.ROLE, resource_name(run_id, ResourceKind.ROLE, ANY), domain)
    implied = identity.role_id(_IMPLIED)

    def role(number: int) -> str:
        name = resource_name(run_id, ResourceKind.ROLE, number)
        made = identity.create(ResourceKind.ROLE, name, {"domain_id": domain})
        identity.imply_role(str(made.id), implied)
        return str(made.id)

    roles = each(role, range(_ROLES), _WORKERS)
    projects = sorted({user.project_id for user in users})
    distinct = list(dict.fromkeys(users))

    def group(number: int) -> None:
        name = resource_name(run_id, ResourceKind.GROUP, number)
        made = identity.create(ResourceKind.GROUP, name, {"domain_id": domain})
        for project in projects:
            identity.grant_to_group(project, str(made.id), roles[number % _ROLES])
        for user in distinct:
            identity.add_to_group(str(made.id), user.id)

    each(group, range(GROUPS), _WORKERS, say)
    return {}


def _tree(
    identity: Identity, users: Sequence[User], journal: Journal, say: Say
) -> Mapping[str, str]:
    """Make the tree: a root, and below it three levels, ten projects below each project."""
    domain, run_id = users[0].domain_id, journal.run_id
    say(f"creating a tree of {TREE_PROJECTS} projects")

    ids: list[str] = []

    def project(number: int) -> str:
        place = {"parent_id": ids[(number - 1) // _BRANCHES]} if number else {}
        name = tree_name(run_id, number)
        made = identity.create(ResourceKind.PROJECT, name, {"domain_id": domain, **place})
        return str(made.id)

    while len(ids) < TREE_PROJECTS:
        # A level: those whose parents are there.
        level = range(len(ids), min(len(ids) * _BRANCHES + 1, TREE_PROJECTS))
        ids += each(project, level, _WORKERS, say)
    return {"tree_root": ids[0]}


_MAKERS: dict[Need, Callable[[Identity, Sequence[User], Journal, Say], Mapping[str, str]]] = {
    Need.GROUPS: _groups,
    Need.PROJECT_TREE: _tree,
}
