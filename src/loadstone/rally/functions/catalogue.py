"""Maps scenarios of the catalogue to their functions."""

from dataclasses import dataclass

from loadstone.engine.callables.model import Function
from loadstone.keystone.resources import CreatedByIterations, ResourceKind
from loadstone.rally.task.catalogue.identity import VALIDATED
from loadstone.rally.task.catalogue.scenarios import DUMMY, NEUTRON, NOVA, SCENARIOS

_HERE = "loadstone.rally.functions"
# openstacksdk takes the better part of a second to import.
_CLOUD = (f"{_HERE}.cloud",)


def _last(name: str) -> str:
    return name.partition(".")[2]


FUNCTIONS: dict[str, Function] = {
    **{entry.name: Function(f"{_HERE}.dummy", _last(entry.name)) for entry in DUMMY},
    "Dummy.dummy_output": Function(f"{_HERE}.dummy_output", "dummy_output"),
    **{
        f"Authenticate.validate_{name}": Function(f"{_HERE}.validate", f"validate_{name}", _CLOUD)
        for name in VALIDATED
    },
    **{entry.name: Function(f"{_HERE}.nova", _last(entry.name), _CLOUD) for entry in NOVA},
    **{entry.name: Function(f"{_HERE}.neutron", _last(entry.name), _CLOUD) for entry in NEUTRON},
}

# Other services that scenarios need, by their type in the catalog.
SERVICES = {entry.name: entry.service for entry in SCENARIOS.values() if entry.service}


@dataclass(frozen=True, slots=True)
class Sweep:
    """Removes, as each user, what the iterations of a scenario left.

    Called once per row, with the same rows and settings.
    """

    function: Function
    made: CreatedByIterations


def _sweep(module: str, kind: ResourceKind) -> Sweep:
    return Sweep(Function(f"{_HERE}.{module}", "sweep", _CLOUD), CreatedByIterations(kind))


SWEEPS: dict[str, Sweep] = {
    **{e.name: _sweep("nova", ResourceKind.SERVER) for e in NOVA if e.cleanup is not None},
    **{entry.name: _sweep("neutron", ResourceKind.NETWORK) for entry in NEUTRON},
}
