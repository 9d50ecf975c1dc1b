"""Rally's NeutronNetworks: creates and lists networks."""

from collections.abc import Mapping
from typing import Any

from loadstone.engine.callables.context import Context
from loadstone.rally.functions.cloud import connect


def create_and_list_networks(
    context: Context, network_create_args: Mapping[str, Any] | None = None
) -> None:
    """Create a network, keep it, and list all that the user sees."""
    cloud = connect(context)
    name = f"{context.settings['prefix']}{context.iteration}"
    with context.action("neutron.create_network"):
        cloud.network.create_network(**{**(network_create_args or {}), "name": name})
    with context.action("neutron.list_networks"):
        list(cloud.network.networks())


def sweep(context: Context) -> None:
    """Remove the user's networks that this run created, by name."""
    cloud = connect(context)
    start = context.settings["prefix"]
    with context.action("cleanup.networks"):
        for network in list(cloud.network.networks()):
            if str(network.name).startswith(start):
                cloud.network.delete_network(network)
