"""A cloud as a function of a worker process sees it: openstacksdk, as the iteration's user."""

from collections import OrderedDict

from keystoneauth1.identity.v3 import Password
from openstack.connection import Connection

from loadstone.engine.callables.context import Context
from loadstone.target.cloud import Cloud, Endpoint, Tls
from loadstone.target.session import open_session

MOST_CONNECTIONS = 64  # of users, that a worker keeps open
# What Rally's scenarios were written for: no networks need be named.
_NOVA_VERSION = "2.1"
_kept: OrderedDict[str, Connection] = OrderedDict()


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
        project_domain_name=user["project_domain_name"],
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
