"""Compiles a scenario and a cloud into a plan."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.contexts.existing import own_user
from loadstone.keystone.resources import Token, User
from loadstone.keystone.scenarios import Scenario
from loadstone.keystone.scenarios.model import ACCESS_TOKEN, ROOT, TOKEN_COLUMNS
from loadstone.plan.load import Load
from loadstone.plan.model import Limits, Plan
from loadstone.plan.script import Pause, Step, Text

# A closed loop that is limited by iterations only.
_UNKNOWN_LOAD_S = 300.0


def _known_s(load: Load) -> float:
    """Return how long a load lasts; an estimate if only its iterations are counted."""
    return load.duration_s if load.duration_s is not None else _UNKNOWN_LOAD_S


def needed_s(column: str, load: Load, limits: Limits) -> float:
    """Return for how long tokens of a column must be valid before a load."""
    lasting_s = limits.tokens_last_s(_known_s(load))
    return _least_s(column, lasting_s, is_open_ended=load.duration_s is None)


def compile_plan(
    scenario: Scenario,
    access: Access,
    users: Sequence[User],
    tokens: Mapping[str, Sequence[Token]],
    load: Load,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> Plan:
    """Return the plan for this load of this scenario on this cloud.

    `tokens` has the users' tokens by column (`scenario.token_columns`).
    """
    if scenario.origin is not None and scenario.columns:
        raise AssertionError(f"{scenario.name} needs a cloud")
    load_s = _known_s(load)
    lasting_s = limits.tokens_last_s(load_s)
    columns = {
        name: _column(name, access, users, tokens, lasting_s, is_open_ended=load.duration_s is None)
        for name in sorted(scenario.columns)
    }
    columns |= scenario.values
    for name, values in columns.items():
        if not values:
            raise InvalidInput(f"{scenario.name} needs at least one {name}, and none was prepared")
    # Row i of the tokens and row i of the user names must belong to the same user.
    for name in scenario.token_columns:
        count = len(columns[name])
        if len(columns) > 1 and count % max(len(users), 1):
            raise InvalidInput(
                f"{scenario.name} needs as many tokens for each user: {count} tokens were "
                f"prepared for {len(users)} users"
            )
    steps = scenario.steps
    if scenario.origin is None:
        steps = tuple(_below(access.endpoint.path, step) for step in steps)
    return Plan(
        scenario.origin or access.endpoint.origin(access.cloud.tls),
        steps,
        load,
        columns,
        limits,
        connection=scenario.connection,
        mix=scenario.mix,
    )


def _below(path: str, step: Step | Pause) -> Step | Pause:
    match step:
        case Pause():
            return step
        case Step():
            if ROOT in step.path:
                return replace(step, path=(Text(path.removesuffix("v3")),))
            return replace(step, path=(Text(path), *step.path))


def _column(
    name: str,
    access: Access,
    users: Sequence[User],
    tokens: Mapping[str, Sequence[Token]],
    lasting_s: float,
    *,
    is_open_ended: bool,
) -> tuple[str, ...]:
    match name:
        case _ if name in TOKEN_COLUMNS:
            return _valid(name, tokens.get(name, ()), lasting_s, is_open_ended=is_open_ended)
        case "admin_token":
            return (_of_admin(access, None if is_open_ended else lasting_s),)
        case "own_user_id":
            return (str(access.session.get_user_id()),)
        case _ if name in _OF_USER:
            return tuple(_OF_USER[name](user) for user in users)
        case _ if all(name in user.credentials for user in users):
            return tuple(_json_escaped(user.credentials[name]) for user in users)
        case _ if name.startswith(_ADMINS):
            return (_OF_USER[name.removeprefix(_ADMINS)](own_user(access)),)
        case _:
            raise AssertionError(f"a scenario asks for the unknown column {name}")


def _of_admin(access: Access, lasting_s: float | None) -> str:
    """Return a token of the cloud's user; a new one for a load whose duration is not known."""
    if lasting_s is None:
        return access.fresh_token()
    token = access.token(lasting_s)
    if (left_s := access.token_left_s()) < lasting_s:
        raise EnvironmentUnusable(
            f"the administrator's token expires in {left_s:.0f} s, and this load needs it for "
            f"{lasting_s:.0f} s; load for less long, or raise [token] expiration in keystone.conf"
        )
    return token


def _least_s(column: str, lasting_s: float, *, is_open_ended: bool) -> float:
    # Access tokens often live for 300 s (Keycloak's default): a load of unknown duration may begin.
    is_short = is_open_ended and column == ACCESS_TOKEN.column
    return lasting_s - (_UNKNOWN_LOAD_S if is_short else 0.0)


def _valid(
    name: str, tokens: Sequence[Token], lasting_s: float, *, is_open_ended: bool
) -> tuple[str, ...]:
    what, remedy = "tokens to validate", "raise [token] expiration in keystone.conf"
    if name == ACCESS_TOKEN.column:
        what, remedy = "access tokens", "raise their lifetime at the identity provider"
    lasting_s = _least_s(name, lasting_s, is_open_ended=is_open_ended)
    left_s = min((token.expires_at for token in tokens), default=0.0) - time.time()
    if tokens and left_s < lasting_s:
        raise EnvironmentUnusable(
            f"the {what} expire in {left_s:.0f} s, and this load needs them for "
            f"{lasting_s:.0f} s; load for less long, or {remedy}"
        )
    return tuple(token.value for token in tokens)


def _json_escaped(value: str) -> str:
    """Escape text for use inside a JSON string."""
    return json.dumps(value)[1:-1]


_ADMINS = "admin_"  # the same columns for the identity that the target was chosen with
_OF_USER: dict[str, Callable[[User], str]] = {
    "user_id": lambda user: user.id,
    "user_name": lambda user: _json_escaped(user.name),
    "password": lambda user: _json_escaped(user.password),
    "domain_id": lambda user: user.domain_id,
    "domain_name": lambda user: _json_escaped(user.domain_name),
    "project_id": lambda user: user.project_id,
    "project_name": lambda user: _json_escaped(user.project_name),
    "project_domain_name": lambda user: _json_escaped(user.project_domain_name or user.domain_name),
}
