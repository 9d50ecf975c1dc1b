"""Scenario and cloud -> plan."""

import json
from collections.abc import Sequence
from dataclasses import replace

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import Scenario
from loadstone.keystone.things import User
from loadstone.plan.load import Load
from loadstone.plan.model import Limits, Origin, Plan, Tls
from loadstone.plan.script import Step, Text
from loadstone.target import Access


def origin(access: Access) -> Origin:
    """Give the place that load goes to: the v3 API on the host that the user named."""
    tls, endpoint = access.cloud.tls, access.endpoint
    return Origin(
        endpoint.scheme,
        endpoint.host,
        endpoint.port,
        Tls(tls.verify, tls.ca_file, tls.cert_file, tls.key_file),
    )


def compile_plan(
    scenario: Scenario,
    access: Access,
    users: Sequence[User],
    tokens: Sequence[str],
    load: Load,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> Plan:
    """Give all that the engine needs to put this load of this scenario on this cloud."""
    columns = {name: _column(name, access, users, tokens) for name in sorted(scenario.columns)}
    for name, values in columns.items():
        if not values:
            raise InvalidInput(f"{scenario.name} needs at least one {name}, and none was prepared")
    steps = tuple(_below(access.endpoint.path, step) for step in scenario.steps)
    return Plan(origin(access), steps, load, columns, limits)


def _below(path: str, step: Step) -> Step:
    return replace(step, path=(Text(path), *step.path))


def _column(
    name: str, access: Access, users: Sequence[User], tokens: Sequence[str]
) -> tuple[str, ...]:
    match name:
        case "token":
            return tuple(tokens)
        case "admin_token":
            return (access.token(),)
        case "user_name":
            return tuple(_in_json(user.name) for user in users)
        case "password":
            return tuple(_in_json(user.password) for user in users)
        case "project_name":
            return tuple(_in_json(user.project_name) for user in users)
        case "domain_name":
            return tuple(_in_json(user.domain_name) for user in users)
        case _:
            raise AssertionError(f"a scenario asks for the unknown column {name}")


def _in_json(value: str) -> str:
    """Escape what goes between the quotes of a JSON string."""
    return json.dumps(value)[1:-1]
