"""Which scenarios of the catalogue are functions, and where they are."""

from dataclasses import dataclass

from loadstone.engine.callables.model import Function
from loadstone.keystone.things import Kind, Made
from loadstone.task.catalogue.identity import VALIDATED
from loadstone.task.catalogue.scenarios import DUMMY, NOVA

_HERE = "loadstone.functions"
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
}

# What a scenario needs beside Keystone, as the catalog calls it.
SERVICES: dict[str, str] = {
    **{f"Authenticate.validate_{name}": service for name, service in VALIDATED.items()},
    **{entry.name: "compute" for entry in NOVA},
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What removes, as each user, what the iterations of a scenario left.

    It is called with the same rows and settings, once for each row.
    """

    function: Function
    made: Made


SWEEPS: dict[str, Sweep] = {
    entry.name: Sweep(Function(f"{_HERE}.nova", "sweep", _CLOUD), Made(Kind.SERVER))
    for entry in NOVA
}


def function_of(scenario: str) -> Function | None:
    """Give the function behind a scenario of this (short) name; None: it is no function."""
    return FUNCTIONS.get(scenario)


def sweep_of(scenario: str) -> Sweep | None:
    """Give what removes what a scenario leaves in other services; None: it leaves nothing."""
    return SWEEPS.get(scenario)


def service_of(scenario: str) -> str | None:
    """Give the type of service that a scenario needs beside Keystone; None: it needs no other."""
    return SERVICES.get(scenario)
