"""Rally's scenarios of identity as data steps, by Rally's names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios.authenticate import ISSUE_TOKEN
from loadstone.keystone.scenarios.model import Scenario
from loadstone.keystone.scenarios.rally.draft import Draft
from loadstone.keystone.scenarios.rally.ground import NOWHERE, Finder, Ground
from loadstone.keystone.scenarios.rally.http_requests import check_random_request, check_request
from loadstone.keystone.scenarios.rally.keystone_basic import BUILDS
from loadstone.keystone.scenarios.rally.requests import (
    as_rally_sends,
    authenticate,
    fetch_and_validate,
    in_words,
)
from loadstone.keystone.scenarios.tokens import ISSUE_AND_VALIDATE
from loadstone.task.catalogue.scenario import Argument
from loadstone.task.catalogue.scenarios import SCENARIOS as CATALOGUE
from loadstone.task.model import Json

FIXED = {scenario.name: scenario for scenario in (ISSUE_TOKEN, ISSUE_AND_VALIDATE)}
HTTP = {
    "HttpRequests.check_request": check_request,
    "HttpRequests.check_random_request": check_random_request,
}

__all__ = ["NOWHERE", "Finder", "Ground", "is_data", "needs_cloud", "scenario"]


def is_data(name: str) -> bool:
    """Whether the scenario is data steps; others are functions (Dummy, NovaServers, ...)."""
    return name in FIXED or name in HTTP or name in BUILDS


def needs_cloud(name: str) -> bool:
    """Whether the scenario is of the cloud's identity API; others have an origin of their own."""
    return name not in HTTP


def scenario(
    name: str,
    arguments: Mapping[str, Json],
    ground: Ground | None = None,
    *,
    rally_requests: bool = False,
) -> Scenario:
    """Give what one iteration sends; the arguments as the task file gives them.

    Asked for anew for each stretch of load, the names of what it makes are never used twice.
    `Actors.announce` puts what it makes into the journal before the load. With `rally_requests`
    an iteration sends all that Rally sends for it.
    """
    if name in FIXED:
        return _fixed_as_rally_sends(FIXED[name]) if rally_requests else FIXED[name]
    if name in HTTP:
        return HTTP[name](arguments)
    if name not in BUILDS or ground is None:
        raise InvalidInput(f"{name}: is no scenario of data steps, or lacks its cloud")
    entry = CATALOGUE[name]
    draft = Draft(name, ground)
    BUILDS[name](draft, _with_defaults(entry.arguments, arguments))
    built = draft.scenario(entry.about.rstrip(".")).of_run(ground.run_id)
    return as_rally_sends(built, arguments) if rally_requests else built


def _fixed_as_rally_sends(plain: Scenario) -> Scenario:
    steps = authenticate() if plain is ISSUE_TOKEN else fetch_and_validate()
    return replace(plain, steps=steps, request=in_words(steps), connection="iteration")


def _with_defaults(known: Sequence[Argument], given: Mapping[str, Json]) -> dict[str, Json]:
    return {argument.name: argument.default for argument in known} | dict(given)
