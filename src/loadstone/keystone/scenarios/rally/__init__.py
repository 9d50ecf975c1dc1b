"""Rally's scenarios of identity as data steps, by Rally's names."""

from collections.abc import Mapping, Sequence

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios.authenticate import ISSUE_TOKEN
from loadstone.keystone.scenarios.model import Scenario
from loadstone.keystone.scenarios.rally.draft import Draft
from loadstone.keystone.scenarios.rally.ground import Finder, Ground
from loadstone.keystone.scenarios.rally.keystone_basic import BUILDS
from loadstone.keystone.scenarios.tokens import ISSUE_AND_VALIDATE
from loadstone.task.catalogue.scenario import Argument
from loadstone.task.catalogue.scenarios import SCENARIOS as CATALOGUE
from loadstone.task.model import Json

FIXED = {scenario.name: scenario for scenario in (ISSUE_TOKEN, ISSUE_AND_VALIDATE)}

__all__ = ["Finder", "Ground", "is_data", "scenario"]


def is_data(name: str) -> bool:
    """Whether the scenario is data steps; others are functions (Dummy, NovaServers, ...)."""
    return name in FIXED or name in BUILDS


def scenario(name: str, arguments: Mapping[str, Json], ground: Ground) -> Scenario:
    """Give what one iteration sends; the arguments as the task file gives them.

    Asked for anew for each stretch of load, the names of what it makes are never used twice.
    `Actors.announce` puts what it makes into the journal before the load.
    """
    if name in FIXED:
        return FIXED[name]
    if name not in BUILDS:
        raise InvalidInput(f"{name}: is no scenario of data steps")
    entry = CATALOGUE[name]
    draft = Draft(name, ground)
    BUILDS[name](draft, _with_defaults(entry.arguments, arguments))
    return draft.scenario(entry.about.rstrip("."))


def _with_defaults(known: Sequence[Argument], given: Mapping[str, Json]) -> dict[str, Json]:
    return {argument.name: argument.default for argument in known} | dict(given)
