"""Places the turns of a study on the lab hosts of a fleet.

Turns that are compared with one another form a block, which one host measures, so that a host's
own speed falls on both sides of every ratio (Box, Hunter and Hunter, Statistics for Experimenters,
chapter 4: blocking).
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.engine import gate
from loadstone.engine.fleet import client
from loadstone.engine.fleet.address import SchedulerAddress
from loadstone.engine.fleet.member import LEASE_S
from loadstone.errors import InvalidInput, LoadstoneError
from loadstone.lab import remote_lab
from loadstone.lab.keystone.settings import Compute, Switch
from loadstone.lab.lab_host import LabHostFacts
from loadstone.lab.remote_lab import LabPlace
from loadstone.study.model import Cell, FaultMeasurement, Study
from loadstone.study.order import Turn
from loadstone.system.say import Say


@dataclass(frozen=True, slots=True)
class LabSlot:
    """A lab host, which measures one turn at a time, and its load hosts."""

    place: LabPlace
    senders: SchedulerAddress

    @property
    def host(self) -> str:
        """Name of the lab host."""
        return self.place.host


def slots(fleet: SchedulerAddress, say: Say) -> tuple[LabSlot, ...]:
    """Return the lab hosts of a fleet that are alike, each with load hosts of its own.

    Empty if the fleet has no lab hosts. Raises InvalidInput if all hosts are lab hosts, which send
    no load.
    """
    with client.opened(fleet) as dask:
        labs = client.lab_hosts(dask)
        senders = client.senders(client.workers(dask))
    if not labs:
        return ()
    places = {one.host: LabPlace(fleet, one.host) for one in labs}
    apart = [one for one in senders if one.host not in places]
    if not apart:
        raise InvalidInput(
            f"the fleet {fleet} has lab hosts and no other hosts that send load; start workers "
            "elsewhere: loadstone fleet up --join ... on a host that is not a lab host"
        )
    facts = {host: _facts(place) for host, place in places.items()}
    equal = alike({host: one.kind for host, one in facts.items()})
    for host in sorted(places.keys() - set(equal)):
        say(f"lab host {host} is of another kind than {equal[0]}; nothing is measured there")
    shares = shared([one.address for one in apart], min(len(equal), len(apart)))
    for host in equal[len(shares) :]:
        say(f"lab host {host} is left without a load host; nothing is measured there")
    return tuple(
        LabSlot(places[host], replace(fleet, workers=frozenset(share)))
        for host, share in zip(equal, shares, strict=False)
    )


def _facts(place: LabPlace) -> LabHostFacts:
    with remote_lab.connected(place, is_alone=True) as host:
        return host.facts


def is_usable(slot: LabSlot) -> bool:
    """Return whether a lab host and all its load hosts answer."""
    time.sleep(LEASE_S)  # leases of a killed process must expire first
    try:
        with remote_lab.connected(slot.place, is_alone=False):
            gate.fleet_status(slot.senders)
            return True
    except LoadstoneError:
        return False


def alike(kinds: Mapping[str, object]) -> tuple[str, ...]:
    """Return the hosts of the most frequent kind; the first kind wins a tie."""
    [(most, _)] = Counter(kinds.values()).most_common(1)
    return tuple(host for host, kind in kinds.items() if kind == most)


def shared(addresses: Sequence[str], among: int) -> tuple[tuple[str, ...], ...]:
    """Divide the load hosts among lab hosts."""
    return tuple(tuple(addresses[number::among]) for number in range(among))


def require_placeable(study: Study) -> None:
    """Raise InvalidInput for a study that lab hosts cannot measure."""
    if isinstance(study.measurement, FaultMeasurement):
        raise InvalidInput(
            f"{study.name}: faults are carried out on labs of this machine; run it without --fleet"
        )
    for cell in study.cells:
        why = _obstacle(cell)
        if why:
            raise InvalidInput(f"{study.name}: {cell} {why}; run it without lab hosts")


def _obstacle(cell: Cell) -> str:
    """Return why lab hosts cannot measure a cell; empty if they can."""
    chosen = dict(cell.settings)
    if cell.is_reference:
        return "is the reference service, which lab hosts do not start"
    if chosen.get("compute", Compute.NONE) != Compute.NONE:
        return "has a compute cloud, which serves its own machine only"
    if cell.service.is_provider:
        return "is an OpenID provider, which serves its own machine only"
    if chosen.get("tls") == Switch.ON:
        return "has tls=on: no other machine has its CA"
    return ""


def blocks(study: Study, order: Sequence[Turn]) -> dict[int, int]:
    """Return for each turn its block: the number of the first turn that it is compared with."""
    block = {turn.number: turn.number for turn in order}
    for one in study.comparisons:
        sides: dict[object, int] = {}
        for turn in order:
            levels = dict(turn.cell.levels)
            if levels.pop(one.factor) not in (one.base, one.other):
                continue
            others = (turn.repeat, *sorted(levels.items()))
            first, own = sides.setdefault(others, block[turn.number]), block[turn.number]
            low, high = sorted((first, own))
            block = {number: low if of == high else of for number, of in block.items()}
            sides = {key: low if of == high else of for key, of in sides.items()}
    return block


def next_turn(
    missing: Sequence[Turn], block: Mapping[int, int], hosts: Mapping[int, str], host: str
) -> Turn | None:
    """Return the next turn of a free host: of its own blocks first, else of a new block."""
    own = (turn for turn in missing if hosts.get(block[turn.number]) == host)
    new = (turn for turn in missing if block[turn.number] not in hosts)
    return next(own, next(new, None))
