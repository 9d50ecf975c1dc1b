"""Rally's NovaServers: boots, lists and deletes servers, and waits for each; lists flavors."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from openstack.compute.v2.server import Server
from openstack.connection import Connection
from openstack.exceptions import ResourceTimeout

from loadstone.engine.callables.context import Context
from loadstone.keystone.contexts.reference import choose
from loadstone.rally.functions.cloud import connect
from loadstone.rally.task.catalogue.scenarios import SERVER_NAMES

# Rally polls after 1 s, then every 2 s, so its measurements have this granularity.
POLL_S = 0.5
PATIENCE_S = 300  # Rally's time-out for the creation and deletion of a server
# Ids found by this process. Projects may have images and networks of the same name.
_found: dict[str, str] = {}


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
    context: Context, detailed: bool = True, is_public: bool | None = True, **query: Any
) -> None:
    """List flavors; the query is that of Nova's API."""
    cloud = connect(context)
    parameters = {name: value for name, value in query.items() if value is not None}
    if not is_public:  # None: all flavors, which Nova's API writes as the text "None"
        parameters["is_public"] = str(is_public)
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
    start = context.settings["prefix"]
    with context.action("cleanup.servers"):
        listed = cloud.compute.servers(details=False)
        servers = [server for server in listed if str(server.name).startswith(start)]
        for server in servers:
            cloud.compute.delete_server(server)
        for server in servers:
            cloud.compute.wait_for_delete(server, interval=POLL_S, wait=PATIENCE_S)


def _boot(
    context: Context,
    cloud: Connection,
    image: Mapping[str, Any],
    flavor: Mapping[str, Any],
    more: Mapping[str, Any],
) -> Server:
    query = image.get("list_kwargs", {})
    attributes = {
        "name": f"{context.settings['prefix']}{context.iteration}",
        "image_id": _cached_id(context, "image", image, lambda: cloud.image.images(**query)),
        "flavor_id": _cached_id(context, "flavor", flavor, cloud.compute.flavors),
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
    arguments = {SERVER_NAMES[name]: value for name, value in more.items() if value is not None}
    if isinstance(arguments.get("networks"), list):  # text is a choice of Nova's: auto, none
        arguments["networks"] = [_network(nic) for nic in arguments["networks"]]
    if "security_groups" in arguments:
        arguments["security_groups"] = [{"name": name} for name in arguments["security_groups"]]
    if "user_data" in arguments:
        arguments["user_data"] = _as_base64(arguments["user_data"])
    if "personality" in arguments:
        arguments["personality"] = [
            {"path": path, "contents": _as_base64(content)}
            for path, content in arguments["personality"].items()
        ]
    return arguments


def _as_base64(text: object) -> str:
    return b64encode(str(text).encode()).decode()


def _network(nic: Mapping[str, str]) -> dict[str, str]:
    names = {
        "net-id": "uuid",
        "port-id": "port",
        "v4-fixed-ip": "fixed_ip",
        "v6-fixed-ip": "fixed_ip",
    }
    return {names.get(name, name): value for name, value in nic.items()}


def _cached_id(
    context: Context,
    kind: str,
    reference: Mapping[str, Any],
    list_things: Callable[[], Iterable[Any]],
) -> str:
    if reference.get("id"):
        return str(reference["id"])
    # All projects have the same flavors, but images and networks of their own.
    owner = "" if kind == "flavor" else context.user["project_id"]
    key = f"{owner} {kind} {json.dumps(reference, sort_keys=True)}"
    if key not in _found:
        names = {str(one.id): one.name or "" for one in list_things()}
        _found[key] = choose(kind, reference, names)
    return _found[key]
