"""Rally's exact sequence of requests, for figures that are comparable with Rally's.

Recorded between Rally 5.1.1 with rally-openstack 4.1.0 (an environment made by --fromenv) and
Keystone 30.0.0: for each identity, administrator and user, two sessions that discover and
authenticate; another discovery before the first call; each domain looked up by id, then by name;
each user read again after its creation. Rally opens a connection per session (two or four); here
the iteration has one new connection.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from loadstone.keystone.scenarios.atomics import OUTSIDE, atomics
from loadstone.keystone.scenarios.authenticate import ask_for_token
from loadstone.keystone.scenarios.model import ADMIN_TOKEN, ROOT, SUBJECT_TOKEN, Scenario
from loadstone.plan.json_value import Json
from loadstone.plan.script import (
    Captured,
    Column,
    HeaderCapture,
    Part,
    Pause,
    StatusCondition,
    Step,
    Template,
    text,
)

if TYPE_CHECKING:
    from loadstone.keystone.scenarios.body import Tree

_ADMIN, _USER = Captured("admin_session"), Captured("user_session")
_DISCOVER, _LOG_IN, _READ = f"{OUTSIDE}discover", f"{OUTSIDE}get_token", f"{OUTSIDE}get_user"
_FETCH, _VALIDATE = "keystone_v3.fetch_token", "keystone_v3.validate_token"
_USERS_MADE = ("keystone_v3.create_user", "keystone_v3.create_users")


def authenticate() -> tuple[Step, ...]:
    """Return the five requests of Authenticate.keystone, all in its one action."""
    return tuple(replace(step, action="authenticate.keystone") for step in _sessions("", _USER))


def fetch_and_validate() -> tuple[Step, ...]:
    """Return KeystoneBasic.authenticate_user_and_validate_token; its user is the admin."""
    fetched = Captured("fetched_token")
    return (
        *_before(),
        _discover(_FETCH),
        _log_in(_FETCH, "admin_", fetched),
        _discover(_VALIDATE, _ADMIN),
        Step(
            _VALIDATE,
            "GET",
            text("/auth/tokens"),
            (*_as(_ADMIN), ("X-Subject-Token", (fetched,))),
        ),
    )


def as_rally_sends(plain: Scenario, arguments: Mapping[str, Json]) -> Scenario:
    """Return a KeystoneBasic scenario with all requests that Rally sends in addition."""
    steps = [step for step in plain.steps if isinstance(step, Step)]
    tree = atomics([step.action for step in steps])
    ends = {atomic.last: atomic for atomic in tree if atomic.name in _USERS_MADE}
    sequence = list(_before())
    for index, step in enumerate(steps):
        is_as_user = any(SUBJECT_TOKEN in value for _, value in step.headers)
        session = _USER if is_as_user else _ADMIN
        if index == 0:
            sequence.append(_discover(step.action, session))
        domain = _domain_name(step, arguments)
        if domain is not None:
            sequence += _domain(step.action, domain)
        sequence.append(replace(step, headers=_in_session(step)))
        if index in ends:
            steps_of_user = steps[ends[index].first : index + 1]
            sequence += [_read(user_step) for user_step in steps_of_user if user_step.captures]
    if plain.name == "KeystoneBasic.create_and_update_user":
        sequence.append(_read(steps[0]))
    return replace(
        plain, steps=tuple(sequence), request=describe(tuple(sequence)), connection="iteration"
    )


def describe(steps: tuple[Step | Pause, ...]) -> str:
    """Describe the number of requests."""
    requests = [step for step in steps if isinstance(step, Step)]
    logins = sum(step.path == text("/auth/tokens") and step.method == "POST" for step in requests)
    return f"Rally's own sequence: {len(requests)} requests, {logins} of them authentications"


def _before() -> Iterator[Step]:
    yield from _sessions("admin_", _ADMIN)
    yield from _sessions("", _USER)


def _sessions(whose: str, session: Captured) -> tuple[Step, ...]:
    first = Captured(f"{session.capture}_first")
    return (
        _discover(_DISCOVER),
        _log_in(_LOG_IN, whose, first),
        _discover(_DISCOVER),
        _log_in(_LOG_IN, whose, session),
        _discover(_DISCOVER, session),
    )


def _discover(action: str, session: Captured | None = None) -> Step:
    headers = (("Accept", text("application/json")),) if session is None else _as(session)
    return Step(action, "GET", (ROOT,), headers, expect_status=(200, 300))


def _log_in(action: str, whose: str, session: Captured) -> Step:
    def hole(name: str) -> Template:
        return (Column(f"{whose}{name}"),)

    user: Tree = {
        "password": hole("password"),
        "name": hole("user_name"),
        "domain": {"name": hole("domain_name")},
    }
    project: Tree = {
        "name": hole("project_name"),
        "domain": {"name": hole("project_domain_name")},
    }
    identity: Tree = {"methods": ["password"], "password": {"user": user}}
    return replace(
        ask_for_token(action, identity, {"project": project}),
        captures=(HeaderCapture(session.capture, "X-Subject-Token"),),
    )


def _domain(action: str, name: str) -> tuple[Step, Step]:
    quoted = quote(name, safe="")
    by_id = Step(action, "GET", text(f"/domains/{quoted}"), _as(_ADMIN), expect_status=(200, 404))
    by_name = Step(
        action,
        "GET",
        text(f"/domains?name={quoted}"),
        _as(_ADMIN),
        only_if=StatusCondition(action, (404,)),
    )
    return by_id, by_name


def _domain_name(step: Step, arguments: Mapping[str, Json]) -> str | None:
    """Return the domain that Rally looks up before this request."""
    outer, _, name = step.action.rpartition("/")
    match outer, name.partition("#")[0]:
        case "", "keystone_v3.create_project":
            return _named(arguments) or "Default"
        case "", "keystone_v3.create_user":
            return _named(arguments) or _named(arguments.get("create_user_kwargs")) or "Default"
        case "keystone_v3.create_users", "keystone_v3.create_user":
            return "Default"
        case "", "keystone_v3.create_role":
            return _named(arguments) or _named(arguments.get("create_role_kwargs"))
        case "", "keystone_v3.list_roles":
            return _named(arguments.get("list_role_kwargs"))
        case _:
            return None


def _named(arguments: Json) -> str | None:
    name = arguments.get("domain_name") if isinstance(arguments, Mapping) else None
    return str(name) if name else None


def _read(step: Step) -> Step:
    (capture,) = step.captures
    path = (*text("/users/"), Captured(capture.name))
    return Step(_READ, "GET", path, _as(_ADMIN))


def _as(session: Captured) -> tuple[tuple[str, Template], ...]:
    return (("Accept", text("application/json")), ("X-Auth-Token", (session,)))


def _in_session(step: Step) -> tuple[tuple[str, Template], ...]:
    sessions: dict[Part, Part] = {ADMIN_TOKEN: _ADMIN, SUBJECT_TOKEN: _USER}
    return tuple(
        (name, tuple(sessions.get(part, part) for part in value)) for name, value in step.headers
    )
