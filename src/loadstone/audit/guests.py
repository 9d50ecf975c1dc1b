"""How many guests fit on compute nodes by memory.

Both formulas are from Red Hat's reference architecture (2016): all guests of a node, and those that
still fit beside the running ones.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.audit.facts import HostFacts, MissingFact
from loadstone.cloud.access import Access, not_json, unusable
from loadstone.errors import EnvironmentUnusable, InvalidInput

# Facts of a compute node, in the order of Node's fields; the ratio may be unset.
OF_NODES = ("host.memory_mb", "host.available_mb", "nova.reserved_host_memory_mb")
RATIO = "nova.ram_allocation_ratio"
# The last microversion in which Nova reports memory; from 2.88 on Placement does.
NOVA_VERSION = "2.53"


@dataclass(frozen=True, slots=True)
class Node:
    """Memory of a compute node."""

    name: str
    total_mb: float
    free_mb: float | None  # None: not known
    reserved_mb: float
    overcommit: float


@dataclass(frozen=True, slots=True)
class Flavor:
    """Memory of a guest."""

    name: str
    ram_mb: float


@dataclass(frozen=True, slots=True)
class Guests:
    """Guests of one flavor on one node."""

    node: str
    flavor: str
    total: int
    additional: int | None


def count(nodes: Iterable[Node], flavors: Sequence[Flavor]) -> tuple[Guests, ...]:
    """Return floor((total - reserved) x overcommit / flavor) and floor(free / flavor)."""
    return tuple(
        Guests(node.name, flavor.name, _total(node, flavor), _additional(node, flavor))
        for node in nodes
        for flavor in flavors
    )


def _total(node: Node, flavor: Flavor) -> int:
    usable_mb = max(0.0, node.total_mb - node.reserved_mb) * node.overcommit
    return math.floor(usable_mb / flavor.ram_mb)


def _additional(node: Node, flavor: Flavor) -> int | None:
    # Nova's free memory is negative on a node that is overcommitted.
    return None if node.free_mb is None else max(0, math.floor(node.free_mb / flavor.ram_mb))


def of_facts(hosts: Iterable[HostFacts], overcommit: float) -> tuple[Node, ...]:
    """Return the compute nodes among hosts whose facts were collected.

    `overcommit` counts for nodes whose nova.conf sets no ratio.
    """
    found = []
    for host in hosts:
        if "compute" in host.facts.roles and host.facts.knows("host.memory_mb"):
            ratio = _number(host, RATIO) if host.facts.knows(RATIO) else overcommit
            total_mb, free_mb, reserved_mb = (_number(host, name) for name in OF_NODES)
            found.append(Node(host.host, total_mb, free_mb, reserved_mb, ratio))
    return tuple(found)


def without_ratio(hosts: Iterable[HostFacts]) -> tuple[str, ...]:
    """Return the compute nodes whose nova.conf sets no ratio of guest memory."""
    compute = (host for host in hosts if "compute" in host.facts.roles)
    return tuple(host.host for host in compute if not host.facts.knows(RATIO))


def _number(host: HostFacts, name: str) -> float:
    """Return a fact that is a number; InvalidInput names the host without it."""
    try:
        value = host.facts.get(name)
    except MissingFact as missing:
        raise InvalidInput(f"{host.host}: {missing.name}: {missing.reason}") from None
    try:
        return float(str(value))
    except ValueError:
        raise InvalidInput(f"{host.host}: {name} is not a number: {value!r}") from None


def of_cloud(
    access: Access, reserved_mb: float, overcommit: float
) -> tuple[tuple[Node, ...], tuple[Flavor, ...]]:
    """Return compute nodes and flavors as Nova lists them."""
    rows = _listed(access, "/os-hypervisors/detail", "hypervisors")
    nodes = tuple(
        Node(
            str(row["hypervisor_hostname"]),
            float(row["memory_mb"]),
            float(row["free_ram_mb"]),
            reserved_mb,
            overcommit,
        )
        for row in rows
    )
    rows = _listed(access, "/flavors/detail", "flavors", is_public="None")
    return nodes, tuple(Flavor(str(row["name"]), float(row["ram"])) for row in rows)


def _listed(access: Access, path: str, key: str, **query: str) -> list[dict[str, Any]]:
    """Return all rows of a list, of which Nova gives 1,000 at a time unless it is set otherwise."""
    rows: list[dict[str, Any]] = []
    while True:
        page = _page(access, path, key, query)
        rows += page[key]
        last = page[key][-1].get("id") if f"{key}_links" in page and page[key] else None
        if last is None or query.get("marker") == str(last):
            return rows
        query = {**query, "marker": str(last)}


def _page(access: Access, path: str, key: str, query: dict[str, str]) -> dict[str, Any]:
    from keystoneauth1.exceptions import CatalogException, ClientException

    service = {
        "service_type": "compute",
        "interface": access.cloud.interface,
        "region_name": access.cloud.region,
    }
    try:
        response = access.session.get(
            path,
            params=query,
            endpoint_filter=service,
            microversion=NOVA_VERSION,
            raise_exc=False,
        )
    except CatalogException:
        raise EnvironmentUnusable(access.lacks("compute")) from None
    except ClientException as error:
        raise unusable(access.cloud, error) from None
    if response.status_code != 200:
        raise EnvironmentUnusable(
            f"Nova answers {response.status_code} to {path}; an administrator may list compute "
            "nodes"
        )
    try:
        page: dict[str, Any] = response.json()
        if isinstance(page[key], list):
            return page
    except (KeyError, TypeError, ValueError):
        pass
    raise not_json(access.cloud, f"list {key}", response)
