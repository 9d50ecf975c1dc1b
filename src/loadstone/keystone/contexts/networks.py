"""Creates networks for the projects of a run."""

from collections.abc import Sequence
from functools import partial
from ipaddress import IPv4Network

from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.model import Network
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal
from loadstone.keystone.networks import Networks
from loadstone.keystone.resources import ANY, ResourceKind, resource_name
from loadstone.system.concurrently import each


def make_networks(
    identity: Identity, context: Network, projects: Sequence[str], journal: Journal
) -> dict[str, tuple[str, ...]]:
    """Create networks in each project; return their ids by project.

    Subnets follow each other from `start_cidr` on, as in Rally.
    """
    networks = Networks(identity)
    networks.require_service()
    first = IPv4Network(context.start_cidr)
    count = 0
    kind = ResourceKind.NETWORK
    journal.create(kind, resource_name(journal.run_id, kind, ANY))
    network_ids: dict[str, tuple[str, ...]] = {}
    for number, project in enumerate(projects):
        for index in range(context.networks_per_tenant):
            name = resource_name(journal.run_id, kind, f"{number}-{index}")
            create = partial(networks.create, project, attributes=context.attributes)
            # After Ctrl-C, `each` waits for the call on its way: clean-up finds the network.
            [network_id] = each(create, (name,), 1)
            for _ in range(context.subnets_per_network):
                cidr = str(_following(first, count))
                networks.add_subnet(network_id, project, cidr, list(context.dns_nameservers))
                count += 1
            network_ids[project] = (*network_ids.get(project, ()), network_id)
    return network_ids


def _following(first: IPv4Network, number: int) -> IPv4Network:
    """Return the network of the same size that comes `number` places after the first."""
    try:
        start = first.network_address + number * first.num_addresses
    except ValueError:
        raise InvalidInput(
            f"network: there is no subnet {number + 1} of the size of {first} after it; choose "
            "another start_cidr"
        ) from None
    return IPv4Network((start, first.prefixlen))
