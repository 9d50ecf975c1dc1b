"""Connects a worker process to a cloud: openstacksdk as the iteration's user."""

from collections import OrderedDict

from keystoneauth1.identity.v3 import Password
from openstack.connection import Connection

from loadstone.cloud.cloud import Cloud, Endpoint
from loadstone.cloud.session import open_session
from loadstone.engine.callables.context import Context
from loadstone.plan.model import Tls

MOST_CONNECTIONS = 64  # connections that a worker keeps open, one per user
# Rally's scenarios were written for this version: networks are optional.
_NOVA_VERSION = "2.1"
_kept: OrderedDict[str, Connection] = OrderedDict()
_ended: list[Connection] = []  # of the iteration before, where each has its own


def connect(context: Context, *, fresh: bool = False) -> Connection:
    """Connect as the iteration's user, project-scoped: one POST /v3/auth/tokens.

    A worker keeps a user's connection and token for later iterations, unless the settings say that
    each logs in anew. With `fresh` the caller closes the connection.
    """
    if fresh:
        return _connected(context)
    if "logs_in_anew" in context.settings:
        while _ended:
            _ended.pop().close()
        _ended.append(_connected(context))
        return _ended[-1]
    key = context.user["id"]
    connection = _kept.pop(key, None) or _connected(context)
    _kept[key] = connection
    if len(_kept) > MOST_CONNECTIONS:
        _kept.popitem(last=False)[1].close()
    return connection


def _connected(context: Context) -> Connection:
    user, settings = context.user, context.settings
    auth = Password(
        auth_url=settings["auth_url"],
        username=user["name"],
        password=user["password"],
        user_domain_name=user["domain_name"],
        project_name=user["project_name"],
        project_domain_name=user["project_domain_name"],
    )
    cloud = Cloud(
        chosen="",
        auth_url=settings["auth_url"],
        endpoint=Endpoint.parse(settings["auth_url"]),
        who=f"user {user['name']}",
        auth=auth,
        tls=Tls(
            "insecure" not in settings,
            settings.get("ca_file"),
            settings.get("cert_file"),
            settings.get("key_file"),
        ),
        region=settings.get("region"),
    )
    connection = Connection(
        session=open_session(cloud),
        region_name=settings.get("region"),
        interface=settings.get("interface", "public"),
        compute_default_microversion=_NOVA_VERSION,
        # No silent retries: a refused request would look like a slow one.
        image_status_code_retries=0,
    )
    connection.authorize()
    return connection
