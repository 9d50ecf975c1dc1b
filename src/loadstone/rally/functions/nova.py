"""Rally's NovaServers: boots, lists and deletes servers, and waits for each; lists flavors."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openstack.compute.v2.server import Server
from openstack.connection import Connection
from openstack.exceptions import ResourceTimeout

from loadstone.engine.callables.context import Context
from loadstone.rally.functions.cloud import connect

# Rally polls after 1 s, then every 2 s, so its measurements have this granularity.
POLL_S = 0.5
PATIENCE_S = 300  # Rally's time-out for the creation and deletion of a server
# Ids found by this process. Projects may have images and networks of the same name.
_found: dict[str, str] = {}
# Arguments of novaclient's servers.create, as task files have them -> openstacksdk's.
_NAMES = {
    "admin_pass": "admin_password",
    "availability_zone": "availability_zone",
    "block_device_mapping_v2": "block_device_mapping",
    "config_drive": "has_config_drive",
    "disk_config": "disk_config",
    "key_name": "key_name",
    "max_count": "max_count",
    "meta": "metadata",
    "min_count": "min_count",
    "nics": "networks",
    "scheduler_hints": "scheduler_hints",
    "security_groups": "security_groups",
    "userdata": "user_data",
}


def boot_server(
    context: Context,
    image: Mapping[str, Any],
    flavor: Mapping[str, Any],
    **more: Any,
) -> None:
    """Boot a server and keep it."""
    _boot(context, connect(context), image, flavor, more)


def boot_and_list_server(
    context: Context,
    image: Mapping[str, Any],
    flavor: Mapping[str, Any],
    detailed: bool = True,
    **more: Any,
) -> None:
    """Boot a server, keep it, and find it in the list of servers."""
    cloud = connect(context)
    server = _boot(context, cloud, image, flavor, more)
    with context.action("nova.list_servers"):
        servers = list(cloud.compute.servers(details=detailed))
    if server.id not in {one.id for one in servers}:
        raise LookupError(f"server {server.id} is not among the {len(servers)} that are listed")


def boot_and_show_server(
    context: Context,
    image: Mapping[str, Any],
    flavor: Mapping[str, Any],
    **more: Any,
) -> None:
    """Boot a server, keep it, and get it by its id."""
    cloud = connect(context)
    server = _boot(context, cloud, image, flavor, more)
    with context.action("nova.show_server"):
        cloud.compute.get_server(server.id)


def list_servers(context: Context, detailed: bool = True) -> None:
    """List all servers of the user's project."""
    cloud = connect(context)
    with context.action("nova.list_servers"):
        list(cloud.compute.servers(details=detailed))


def list_flavors(
    context: Context, detailed: bool = True, is_public: bool = True, **query: Any
) -> None:
    """List flavors; the query is that of Nova's API."""
    cloud = connect(context)
    parameters = {name: value for name, value in query.items() if value is not None}
    if not is_public:
        parameters["is_public"] = False
    with context.action("nova.list_flavors"):
        # With a limit Rally reads the first page only.
        list(
            cloud.compute.flavors(
                details=detailed, paginated="limit" not in parameters, **parameters
            )
        )


def boot_and_delete_server(
    context: Context,
    image: Mapping[str, Any],
    flavor: Mapping[str, Any],
    min_sleep: float = 0,
    max_sleep: float = 0,
    force_delete: bool = False,
    **more: Any,
) -> None:
    """Boot a server, wait, and delete it."""
    cloud = connect(context)
    server = _boot(context, cloud, image, flavor, more)
    context.pause(min_sleep, max_sleep)
    with context.action("nova.force_delete_server" if force_delete else "nova.delete_server"):
        cloud.compute.delete_server(server, force=force_delete)
        cloud.compute.wait_for_delete(server, interval=POLL_S, wait=PATIENCE_S)


def sweep(context: Context) -> None:
    """Remove the user's servers that this run created, by name."""
    cloud = connect(context)
    with context.action("cleanup.servers"):
        servers = _ours(context, cloud)
        for server in servers:
            cloud.compute.delete_server(server)
        for server in servers:
            cloud.compute.wait_for_delete(server, interval=POLL_S, wait=PATIENCE_S)


def _ours(context: Context, cloud: Connection) -> list[Server]:
    start = context.settings["prefix"]
    servers = cloud.compute.servers(details=False)
    return [server for server in servers if str(server.name).startswith(start)]


def _boot(
    context: Context,
    cloud: Connection,
    image: Mapping[str, Any],
    flavor: Mapping[str, Any],
    more: Mapping[str, Any],
) -> Server:
    attributes = {
        "name": f"{context.settings['prefix']}{context.iteration}",
        "image_id": _image_id(context, cloud, image),
        "flavor_id": _flavor_id(context, cloud, flavor),
        **_attributes(_with_network(context, cloud, more)),
    }
    with context.action("nova.boot_server"):
        server = cloud.compute.create_server(**attributes)
        try:
            return cloud.compute.wait_for_server(server, interval=POLL_S, wait=PATIENCE_S)
        except ResourceTimeout:
            message = f"server {server.id} was not ACTIVE within {PATIENCE_S} s"
            raise TimeoutError(message) from None


def _with_network(context: Context, cloud: Connection, more: Mapping[str, Any]) -> dict[str, Any]:
    """Choose among the networks that the run made for the project, as Rally does.

    Iterations take them in turn if `auto_assign_nic` is set. Else they take the first one, unless
    `nics` says something else.
    """
    arguments = dict(more)
    takes_turns, nics = arguments.pop("auto_assign_nic", False), arguments.get("nics")
    networks = context.user.get("networks", "").split()
    if networks and takes_turns and not nics:
        arguments["nics"] = [{"net-id": networks[context.iteration % len(networks)]}]
    elif networks and nics is None:
        arguments["nics"] = [{"net-id": networks[0]}]
    elif isinstance(nics, list):
        arguments["nics"] = [_with_network_id(context, cloud, nic) for nic in nics]
    return arguments


def _with_network_id(context: Context, cloud: Connection, nic: Mapping[str, str]) -> dict[str, str]:
    """Return a NIC with the id of the network that it names."""
    named = {key: value for key, value in nic.items() if key != "net-name"}
    if "net-name" in nic and not nic.get("net-id"):
        reference = {"name": nic["net-name"], "accurate": True}
        named["net-id"] = _cached_id(context, "network", reference, cloud.network.networks)
    return named


def _attributes(more: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(more) - set(_NAMES))
    if unknown:
        raise ValueError(
            f"a server is not created with {unknown[0]!r}; choose from {sorted(_NAMES)}"
        )
    arguments = {_NAMES[name]: value for name, value in more.items() if value is not None}
    if isinstance(arguments.get("networks"), list):  # text is a choice of Nova's: auto, none
        arguments["networks"] = [_network(nic) for nic in arguments["networks"]]
    if "security_groups" in arguments:
        arguments["security_groups"] = [{"name": name} for name in arguments["security_groups"]]
    if "user_data" in arguments:
        arguments["user_data"] = b64encode(str(arguments["user_data"]).encode()).decode()
    return arguments


def _network(nic: Mapping[str, str]) -> dict[str, str]:
    names = {
        "net-id": "uuid",
        "port-id": "port",
        "v4-fixed-ip": "fixed_ip",
        "v6-fixed-ip": "fixed_ip",
    }
    return {names.get(name, name): value for name, value in nic.items()}


def _flavor_id(context: Context, cloud: Connection, reference: Mapping[str, Any]) -> str:
    return _cached_id(context, "flavor", reference, cloud.compute.flavors)


def _image_id(context: Context, cloud: Connection, reference: Mapping[str, Any]) -> str:
    query = dict(reference.get("list_kwargs", {}))
    return _cached_id(
        context,
        "image",
        reference,
        lambda: cloud.image.images(**query),
        is_unique=reference.get("accurate", False),
    )


def _cached_id(
    context: Context,
    kind: str,
    reference: Mapping[str, Any],
    list_things: Any,
    *,
    is_unique: bool = True,
) -> str:
    if reference.get("id"):
        return str(reference["id"])
    # All projects have the same flavors, but images and networks of their own.
    owner = "" if kind == "flavor" else context.user["project_id"]
    key = f"{owner} {kind} {json.dumps(reference, sort_keys=True)}"
    if key not in _found:
        _found[key] = _choose(kind, reference, list(list_things()), is_unique=is_unique)
    return _found[key]


def _choose(
    kind: str, reference: Mapping[str, Any], things: Sequence[Any], *, is_unique: bool
) -> str:
    """Choose as Rally does: exact name, else pattern; of several images the last by name."""
    name = reference.get("name")
    if not name and not reference.get("regex"):
        raise ValueError(f"{kind}: give id, name or regex, not {dict(reference)}")
    exact = [one for one in things if name and one.name == name]
    if exact or (name and reference.get("accurate", False)):
        return _single(kind, reference, exact, is_unique=True)
    try:
        pattern = re.compile(str(name or reference["regex"]))
    except re.error:  # a name that is no pattern
        return _single(kind, reference, [], is_unique=True)
    matching = [one for one in things if pattern.search(one.name or "")]
    return _single(kind, reference, matching, is_unique=is_unique)


def _single(
    kind: str, reference: Mapping[str, Any], matches: Iterable[Any], *, is_unique: bool
) -> str:
    ordered = sorted(matches, key=lambda one: one.name or "")
    if not ordered:
        raise LookupError(f"no {kind} is {dict(reference)}")
    if is_unique and len(ordered) > 1:
        ids = ", ".join(str(one.id) for one in ordered)
        raise LookupError(f"more than one {kind} is {dict(reference)}: {ids}")
    return str(ordered[-1].id)
