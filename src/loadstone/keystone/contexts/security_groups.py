"""Security groups that Neutron makes in the projects of a run."""

from collections.abc import Sequence

from loadstone.cloud import Access
from loadstone.errors import InvalidInput
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import Resource, ResourceKind, User, security_group_name


def note_security_groups(access: Access, users: Sequence[User], journal: Journal) -> None:
    """Record in the journal that the users' projects get a security group `default`.

    Neutron makes it before the first network or port of a project, and keeps it when the project is
    removed.
    """
    try:
        if access.service_url("network") is None:
            return
    except InvalidInput:
        return  # it is on another machine, which is not permitted: the groups cannot be removed
    record = journal.record()
    known = {thing.name for thing in record.remaining} if record is not None else set()
    for name, project in {user.project_name: user.project_id for user in users}.items():
        group = Resource(ResourceKind.SECURITY_GROUP, security_group_name(name), project)
        if group.name not in known:
            journal.created(group)
