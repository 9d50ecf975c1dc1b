"""Identity scenarios as data steps, by Rally's names and by ours."""

from collections.abc import Mapping
from dataclasses import replace

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import named
from loadstone.keystone.scenarios.authenticate import ISSUE_TOKEN
from loadstone.keystone.scenarios.build_context import DRY_RUN, BuildContext
from loadstone.keystone.scenarios.draft import Draft
from loadstone.keystone.scenarios.model import Scenario
from loadstone.keystone.scenarios.tokens import ISSUE_AND_VALIDATE
from loadstone.plan.json_value import Json
from loadstone.rally.scenarios.http_requests import check_random_request, check_request
from loadstone.rally.scenarios.keystone_basic import BUILDS
from loadstone.rally.scenarios.requests import (
    as_rally_sends,
    authenticate,
    describe,
    fetch_and_validate,
)
from loadstone.rally.task.catalogue.own import OIDC_PLATFORM, entry_of
from loadstone.rally.task.catalogue.scenarios import SCENARIOS as CATALOGUE

FIXED = {scenario.name: scenario for scenario in (ISSUE_TOKEN, ISSUE_AND_VALIDATE)}
_STEPS_OF_RALLY = {ISSUE_TOKEN.name: authenticate, ISSUE_AND_VALIDATE.name: fetch_and_validate}
HTTP = {
    "HttpRequests.check_request": check_request,
    "HttpRequests.check_random_request": check_random_request,
}

_MOST_STEPS = 255  # the engine numbers the steps of an iteration with one byte


def is_data(name: str) -> bool:
    """Whether it consists of data steps; others are functions (Dummy, NovaServers, ...)."""
    return name in FIXED or name in HTTP or name in BUILDS or _is_own(name)


def _is_own(name: str) -> bool:
    entry = None if name in CATALOGUE else entry_of(name)
    return entry is not None and entry.platform != OIDC_PLATFORM


def has_requests_of_rally(name: str) -> bool:
    """Whether Rally sends more than the scenario says; not so for HttpRequests and plugins."""
    return name not in HTTP and (name not in FIXED or name in _STEPS_OF_RALLY)


def scenario(
    name: str,
    arguments: Mapping[str, Json],
    context: BuildContext = DRY_RUN,
    *,
    rally_requests: bool = False,
) -> Scenario:
    """Return what one iteration of a scenario that `is_data` sends, with the file's arguments.

    Called again for each phase of load, so that names of created resources are never reused.
    `Actors.announce` records in the journal what it creates before the load. With `rally_requests`
    an iteration sends all requests that Rally sends.
    """
    if name in FIXED:
        return _fixed_as_rally_sends(FIXED[name]) if rally_requests else FIXED[name]
    if name in HTTP:
        return HTTP[name](arguments)
    if _is_own(name):
        if rally_requests:
            raise InvalidInput("is not Rally's; leave out --rally-requests")
        return named(name)
    _require_few_users(arguments)
    entry = CATALOGUE[name]
    draft = Draft(name, context)
    BUILDS[name](draft, {one.name: one.default for one in entry.arguments} | dict(arguments))
    built = draft.scenario(entry.about.rstrip(".")).of_run(context.run_id)
    built = as_rally_sends(built, arguments) if rally_requests else built
    if len(built.steps) > _MOST_STEPS:
        # Only this argument makes an iteration longer.
        raise _too_long(f"{len(built.steps):,}")
    return built


def _require_few_users(arguments: Mapping[str, Json]) -> None:
    """Refuse a number that would take long to build, only to be refused."""
    users = arguments.get("users_per_tenant")
    if isinstance(users, int) and users > _MOST_STEPS:
        raise _too_long(f"more than {users:,}")


def _too_long(count: str) -> InvalidInput:
    return InvalidInput(
        f"users_per_tenant: an iteration would send {count} requests, and the engine sends "
        f"{_MOST_STEPS} at most; give fewer users"
    )


def with_look_ups(
    built: Scenario,
    arguments: Mapping[str, Json],
    cloud: BuildContext,
    *,
    rally_requests: bool = False,
) -> Scenario:
    """Return a scenario that was built for no cloud with the ids of this cloud."""
    if built.name not in BUILDS:  # it has no ids
        return built
    return scenario(built.name, arguments, cloud, rally_requests=rally_requests)


def _fixed_as_rally_sends(plain: Scenario) -> Scenario:
    steps = _STEPS_OF_RALLY[plain.name]()
    return replace(plain, steps=steps, request=describe(steps), connection="iteration")
