"""A cloud as a function of a worker process sees it: openstacksdk, as the iteration's user."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict

from keystoneauth1.identity.v3 import Password
from openstack.connection import Connection

from loadstone.engine.callables.context import Context
from loadstone.keystone.things import User
from loadstone.target.access import Access
from loadstone.target.cloud import Cloud, Endpoint, Tls
from loadstone.target.session import open_session

MOST_CONNECTIONS = 64  # of users, that a worker keeps open
# What Rally's scenarios were written for: no networks need be named.
_NOVA_VERSION = "2.1"
_kept: OrderedDict[str, Connection] = OrderedDict()


def rows(users: Sequence[User]) -> tuple[dict[str, str], ...]:
    """Give the users as rows of a call plan."""
    return tuple(asdict(user) for user in users)


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


def connect(context: Context, *, fresh: bool = False) -> Connection:
    """Connect as the iteration's user, project-scoped: one POST /v3/auth/tokens.

    A worker keeps a user's connection, with its token, for later iterations; `fresh` makes one of
    this iteration's own.
    """
    if fresh:
        return _connected(context)
    key = context.user["id"]
    connection = _kept.pop(key, None) or _connected(context)
    _kept[key] = connection
    if len(_kept) > MOST_CONNECTIONS:
        _kept.popitem(last=False)[1].close()
    return connection


def _connected(context: Context) -> Connection:
    user, given = context.user, context.settings
    auth = Password(
        auth_url=given["auth_url"],
        username=user["name"],
        password=user["password"],
        user_domain_name=user["domain_name"],
        project_name=user["project_name"],
        project_domain_name=user["domain_name"],
    )
    cloud = Cloud(
        chosen="",
        auth_url=given["auth_url"],
        endpoint=Endpoint.parse(given["auth_url"]),
        who=f"user {user['name']}",
        auth=auth,
        tls=Tls(
            "insecure" not in given,
            given.get("ca_file"),
            given.get("cert_file"),
            given.get("key_file"),
        ),
        region=given.get("region"),
    )
    connection = Connection(
        session=open_session(cloud),
        region_name=given.get("region"),
        compute_default_microversion=_NOVA_VERSION,
        # Sent again without a word, a refusal would look like a slow answer.
        image_status_code_retries=0,
    )
    connection.authorize()
    return connection
