"""Creates networks for the projects of a run."""

from collections.abc import Sequence
from ipaddress import IPv4Network

from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.model import Network
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal
from loadstone.keystone.networks import Networks
from loadstone.keystone.resources import ANY, ResourceKind, network_name


def make_networks(
    identity: Identity, wanted: Network, projects: Sequence[str], journal: Journal
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the networks that were created, by project.

    Subnets follow each other from `start_cidr` on, as in Rally.
    """
    networks = Networks(identity)
    first = IPv4Network(wanted.start_cidr)
    count = 0
    journal.create(ResourceKind.NETWORK, network_name(journal.run_id, ANY))
    made: dict[str, tuple[str, ...]] = {}
    for number, project in enumerate(projects):
        for each in range(wanted.networks_per_tenant):
            name = network_name(journal.run_id, f"{number}-{each}")
            network_id = networks.create(project, name, wanted.attributes)
            for _ in range(wanted.subnets_per_network):
                cidr = str(_following(first, count))
                networks.add_subnet(network_id, project, cidr, list(wanted.dns_nameservers))
                count += 1
            made[project] = (*made.get(project, ()), network_id)
    return made


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
