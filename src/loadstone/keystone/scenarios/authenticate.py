"""Issuing and validating tokens."""

from loadstone.keystone.scenarios.body import Tree, json_body
from loadstone.keystone.scenarios.model import (
    ACCESS_RULES_TOKEN,
    ADMIN_TOKEN,
    JSON_HEADERS,
    SUBJECT_TOKEN,
    Scenario,
)
from loadstone.plan.script import Captured, Column, Step, text

# Keystone refuses tokens with access rules to services that do not say that they keep to them.
_KEEPS_TO_ACCESS_RULES = ("OpenStack-Identity-Access-Rules", text("1.0"))
_PASSWORD: Tree = (Column("password"),)
# By name, as people and services log in: Keystone then looks up user, project and domains.
USER: dict[str, Tree] = {
    "name": (Column("user_name"),),
    "domain": {"name": (Column("domain_name"),)},
}
PROJECT: Tree = {
    "project": {
        "name": (Column("project_name"),),
        "domain": {"name": (Column("project_domain_name"),)},
    }
}


def by_password(password: Tree = _PASSWORD) -> Tree:
    """Return the "identity" of a user who has a password."""
    return {"methods": ["password"], "password": {"user": {**USER, "password": password}}}


def by_token(token: Column | Captured) -> Tree:
    """Return the "identity" of who has a token."""
    return {"methods": ["token"], "token": {"id": (token,)}}


def ask_for_token(action: str, identity: Tree, scope: Tree = None, status: int = 201) -> Step:
    """Return a request for a token; "identity" and "scope" have the API's form."""
    auth = {"identity": identity} if scope is None else {"identity": identity, "scope": scope}
    return Step(
        action=action,
        method="POST",
        path=text("/auth/tokens"),
        headers=JSON_HEADERS,
        body=json_body({"auth": auth}),
        expect_status=(status,),
    )


def validation(action: str, token: Column | Captured, status: int = 200) -> Step:
    """Return the validation of a token by a service, with the administrator's token."""
    headers = (
        ("Accept", text("application/json")),
        ("X-Auth-Token", (ADMIN_TOKEN,)),
        ("X-Subject-Token", (token,)),
        *((_KEEPS_TO_ACCESS_RULES,) if token == ACCESS_RULES_TOKEN else ()),
    )
    return Step(action, "GET", text("/auth/tokens"), headers, expect_status=(status,))


ISSUE_TOKEN = Scenario(
    name="Authenticate.keystone",
    title="token issue",
    request="POST /v3/auth/tokens (password, project scope)",
    steps=(ask_for_token("authenticate.keystone", by_password(), PROJECT),),
)

# Rally validates only after an issue (KeystoneBasic.authenticate_user_and_validate_token); this
# action has the same name.
VALIDATE_TOKEN = Scenario(
    name="Keystone.validate_token",
    title="token validation",
    request="GET /v3/auth/tokens (one service validates the users' tokens)",
    steps=(validation("keystone_v3.validate_token", SUBJECT_TOKEN),),
)
