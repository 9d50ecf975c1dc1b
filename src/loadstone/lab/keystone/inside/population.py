"""Writes many users, projects, groups and role assignments in bulk, as the API would make them.

Through the API, 100,000 users would take hours, because each password is hashed.
"""
# mypy: ignore-errors
# Keystone is installed in the lab's environment only.

import hashlib
import secrets

import sqlalchemy
from both import BATCH, CONF
from keystone.assignment.backends import sql as assignment_sql
from keystone.common import password_hashing, sql
from keystone.identity.backends import sql_model as identity_sql
from keystone.resource.backends import sql_model as resource_sql
from oslo_utils import timeutils

MARK = "population-"  # prefix of the names of these rows
USER = identity_sql.User.__table__
LOCAL_USER = identity_sql.LocalUser.__table__
PASSWORD = identity_sql.Password.__table__
GROUP = identity_sql.Group.__table__
MEMBERSHIP = identity_sql.UserGroupMembership.__table__
PROJECT = resource_sql.Project.__table__
ASSIGNMENT = assignment_sql.RoleAssignment.__table__


def write_population(role_id, users, projects, groups, roles_per_user, unique_passwords):
    """Make the database's population this large; one of the same size is kept."""
    wanted = (users, projects, groups, users * roles_per_user, min(users, unique_passwords))
    with sql.session_for_write() as session:
        if _sizes(session) == wanted:
            return
        _remove(session)
        _write_projects(session, projects)
        _insert(session, GROUP, (row | {"description": ""} for row in _named("group", groups)))
        _write_users(session, users, unique_passwords)
        _insert(session, MEMBERSHIP, _memberships(users, groups))
        _insert(session, ASSIGNMENT, _assignments(role_id, users, projects, roles_per_user))
        _analyze(session)


def _analyze(session):
    """Update the statistics of the query planner, which bulk inserts leave out of date."""
    dialect = session.get_bind().dialect
    statement = {"postgresql": "ANALYZE {}", "mysql": "ANALYZE TABLE {}"}.get(dialect.name)
    if statement is None:
        return
    for table in (USER, LOCAL_USER, PASSWORD, GROUP, MEMBERSHIP, PROJECT, ASSIGNMENT):
        name = dialect.identifier_preparer.format_table(table)
        session.execute(sqlalchemy.text(statement.format(name)))


def _own_users():
    return sqlalchemy.select(LOCAL_USER.c.user_id).where(LOCAL_USER.c.name.like(MARK + "%"))


def _sizes(session):
    count = sqlalchemy.func.count
    select = sqlalchemy.select
    queries = (
        select(count()).select_from(LOCAL_USER).where(LOCAL_USER.c.name.like(MARK + "%")),
        select(count()).select_from(PROJECT).where(PROJECT.c.name.like(MARK + "%")),
        select(count()).select_from(GROUP).where(GROUP.c.name.like(MARK + "%")),
        select(count()).select_from(ASSIGNMENT).where(ASSIGNMENT.c.actor_id.in_(_own_users())),
        select(count(PASSWORD.c.password_hash.distinct()))
        .select_from(PASSWORD)
        .join(LOCAL_USER, PASSWORD.c.local_user_id == LOCAL_USER.c.id)
        .where(LOCAL_USER.c.name.like(MARK + "%")),
    )
    return tuple(session.execute(query).scalar() for query in queries)


def _remove(session):
    ids = [row[0] for row in session.execute(_own_users())]
    for first in range(0, len(ids), 500):  # few enough variables for every SQLite
        some = ids[first : first + 500]
        session.execute(ASSIGNMENT.delete().where(ASSIGNMENT.c.actor_id.in_(some)))
        session.execute(MEMBERSHIP.delete().where(MEMBERSHIP.c.user_id.in_(some)))
        local = sqlalchemy.select(LOCAL_USER.c.id).where(LOCAL_USER.c.user_id.in_(some))
        session.execute(PASSWORD.delete().where(PASSWORD.c.local_user_id.in_(local)))
        session.execute(LOCAL_USER.delete().where(LOCAL_USER.c.user_id.in_(some)))
        session.execute(USER.delete().where(USER.c.id.in_(some)))
    session.execute(GROUP.delete().where(GROUP.c.name.like(MARK + "%")))
    session.execute(PROJECT.delete().where(PROJECT.c.name.like(MARK + "%")))


def _id(kind, number):
    """Return 32 hex digits, spread over the index as Keystone's random ids are."""
    return hashlib.sha256(f"{MARK}{kind}-{number}".encode()).hexdigest()[:32]


def _insert(session, table, rows):
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            session.execute(table.insert(), batch)
            batch = []
    if batch:
        session.execute(table.insert(), batch)


def _named(kind, count):
    domain = CONF.identity.default_domain_id
    for number in range(count):
        name = f"{MARK}{kind}-{number}"
        yield {"id": _id(kind, number), "name": name, "domain_id": domain, "extra": {}}


def _write_projects(session, count):
    parent = CONF.identity.default_domain_id
    more = {"description": "", "enabled": True, "is_domain": False, "parent_id": parent}
    _insert(session, PROJECT, (row | more for row in _named("project", count)))


def _write_users(session, count, unique_passwords):
    """Write users who share passwords, which nobody knows: a hash for each would take hours."""
    if not count:
        return
    now = timeutils.utcnow()
    hashes = [
        password_hashing.hash_password(secrets.token_urlsafe(24)) for _ in range(unique_passwords)
    ]
    users = ({k: v for k, v in row.items() if k != "name"} for row in _named("user", count))
    _insert(session, USER, (row | {"enabled": True, "created_at": now} for row in users))
    local = (
        {"user_id": r["id"], "domain_id": r["domain_id"], "name": r["name"], "failed_auth_count": 0}
        for r in _named("user", count)
    )
    _insert(session, LOCAL_USER, local)
    found = session.execute(
        sqlalchemy.select(LOCAL_USER.c.id).where(LOCAL_USER.c.name.like(MARK + "%"))
    )
    times = {"created_at": now, "created_at_int": now}
    more = {"self_service": False, **times}
    rows = (
        {"local_user_id": row[0], "password_hash": hashes[nth % unique_passwords], **more}
        for nth, row in enumerate(found.fetchall())
    )
    _insert(session, PASSWORD, rows)


def _memberships(users, groups):
    for number in range(users if groups else 0):
        yield {"user_id": _id("user", number), "group_id": _id("group", number % groups)}


def _assignments(role_id, users, projects, roles_per_user):
    for number in range(users):
        for nth in range(roles_per_user):
            project = (number * roles_per_user + nth) % projects
            yield {
                "type": assignment_sql.AssignmentType.USER_PROJECT,
                "actor_id": _id("user", number),
                "target_id": _id("project", project),
                "role_id": role_id,
                "inherited": False,
            }
