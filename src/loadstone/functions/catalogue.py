"""Which scenarios of the catalogue are functions, and where they are."""

from loadstone.engine.callables.model import Function
from loadstone.task.catalogue.scenarios import DUMMY

_HERE = "loadstone.functions"


def _last(name: str) -> str:
    return name.partition(".")[2]


FUNCTIONS: dict[str, Function] = {
    **{entry.name: Function(f"{_HERE}.dummy", _last(entry.name)) for entry in DUMMY},
    "Dummy.dummy_output": Function(f"{_HERE}.dummy_output", "dummy_output"),
}


def function_of(scenario: str) -> Function | None:
    """Give the function behind a scenario of this (short) name; None: it is no function."""
    return FUNCTIONS.get(scenario)
