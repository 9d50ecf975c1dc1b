"""`loadstone audit guests`: how many guests fit on compute nodes by memory."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.audit_options import host_facts
from loadstone.cli.choose import once, refuse_given
from loadstone.cli.duration import Number
from loadstone.cli.output import show_rows
from loadstone.cli.stored import JSON, write_json
from loadstone.errors import InvalidInput

if TYPE_CHECKING:
    from loadstone.audit.guests import Flavor, Guests, Node

MEGABYTES = re.compile(r"([^=]+)=(\d+(?:\.\d+)?)(?::(-?\d+(?:\.\d+)?))?")


@click.command()
@click.argument("facts", nargs=-1, metavar="[FACTS]...", type=click.Path(path_type=Path))
@once("--cloud", metavar="NAME", help="Ask Nova of this entry of clouds.yaml. Default: OS_*.")
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME=MB[:FREE]",
    help="Compute node; may be repeated.",
)
@click.option(
    "--flavor", "flavors", multiple=True, metavar="NAME=MB", help="Flavor; may be repeated."
)
@click.option(
    "--reserved-mb",
    type=Number(min=0),
    default=512.0,  # as Nova's own of reserved_host_memory_mb
    help="Memory that a node reserves for itself. FACTS contain their own value.",
)
@click.option(
    "--overcommit",
    type=Number(min=0, min_open=True),
    default=1.0,
    help="Ratio of guest memory to node memory (ram_allocation_ratio). Also for FACTS of nodes "
    "whose nova.conf sets none.",
)
@JSON
def guests(
    facts: tuple[Path, ...],
    cloud: str | None,
    nodes: tuple[str, ...],
    flavors: tuple[str, ...],
    to: Path | None,
    **memory: float,
) -> None:
    """Count how many guests fit on compute nodes by memory, in total and in addition.

    Nodes come from --node, from FACTS that `loadstone audit collect` wrote on compute nodes, or
    from Nova, which then also lists the flavors.

    \b
    total       floor((memory - reserved) x overcommit / memory of the flavor)
    additional  floor(free memory / memory of the flavor)
    """
    from dataclasses import asdict

    from loadstone.audit.guests import count

    own = (*_named(nodes, memory), *_of_facts(facts, memory["overcommit"]))
    kinds = _flavors(flavors)
    if own:
        why = "asks Nova for the nodes; leave it out with --node and FACTS"
        refuse_given(click.get_current_context(), ("cloud",), why)
    else:
        own, listed = _from_cloud(cloud, memory)
        kinds = kinds or listed
    if not kinds:
        raise InvalidInput("name flavors: --flavor NAME=MB")
    rows = count(own, kinds)
    if to is not None:
        write_json([asdict(row) for row in rows], to)
    else:
        _show(rows)


def _named(values: tuple[str, ...], memory: dict[str, float]) -> "tuple[Node, ...]":
    from loadstone.audit.guests import Node

    found = []
    for value in values:
        match = MEGABYTES.fullmatch(value)
        if match is None:
            raise InvalidInput(f"--node {value}: must be NAME=MB or NAME=MB:FREE")
        free_mb = None if match[3] is None else float(match[3])
        shares = (memory["reserved_mb"], memory["overcommit"])
        found.append(Node(match[1], float(match[2]), free_mb, *shares))
    return tuple(found)


def _flavors(values: tuple[str, ...]) -> "tuple[Flavor, ...]":
    from loadstone.audit.guests import Flavor

    found = []
    for value in values:
        match = MEGABYTES.fullmatch(value)
        if match is None or match[3] is not None or float(match[2]) <= 0:
            raise InvalidInput(f"--flavor {value}: must be NAME=MB, as m1.small=2048")
        found.append(Flavor(match[1], float(match[2])))
    return tuple(found)


def _of_facts(paths: tuple[Path, ...], overcommit: float) -> "tuple[Node, ...]":
    from loadstone.audit import archive
    from loadstone.audit.guests import of_facts, without_ratio

    hosts = host_facts([one for path in paths for one in archive.read(path)[0]], {})
    for host in hosts:
        if host.failure is not None:
            _tell(f"{host.host} is left out, whether it is a compute node or not: {host.failure}")
    found = of_facts(hosts, overcommit)
    if unset := without_ratio(hosts):
        _tell(
            f"{', '.join(unset)}: nova.conf sets no ram_allocation_ratio, counted with "
            f"--overcommit {overcommit:g} (Nova's default is 1.5 up to 26, and 1.0 since 27)"
        )
    if paths and not found:
        raise InvalidInput(f"{paths[0]}: no compute node in it: none of its hosts has a nova.conf")
    return found


def _from_cloud(
    cloud: str | None, memory: dict[str, float]
) -> "tuple[tuple[Node, ...], tuple[Flavor, ...]]":
    from loadstone.audit.guests import of_cloud
    from loadstone.cloud import connect, from_clouds_yaml, from_environment

    named = from_environment(os.environ) if cloud is None else from_clouds_yaml(cloud)
    # Reading two lists is no load, so any host is permitted.
    with connect(named, _tell, beyond_loopback=True) as access:
        return of_cloud(access, memory["reserved_mb"], memory["overcommit"])


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _show(rows: "tuple[Guests, ...]") -> None:
    show_rows(
        ("NODE", "FLAVOR", "TOTAL", "ADDITIONAL"),
        (
            (r.node, r.flavor, str(r.total), "?" if r.additional is None else str(r.additional))
            for r in rows
        ),
    )
