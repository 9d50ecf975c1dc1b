"""More scenarios with tokens: chains, other ways to get one, calls that use one."""

from dataclasses import replace

from loadstone.keystone.scenarios.authenticate import (
    PROJECT,
    ask_for_token,
    by_password,
    by_token,
)
from loadstone.keystone.scenarios.model import SUBJECT_TOKEN, Scenario
from loadstone.plan.script import Captured, HeaderCapture, Step, text

OWN_TOKEN = Captured("token")
_KEEP_TOKEN = (HeaderCapture(name="token", header="X-Subject-Token"),)
_ACCEPT = ("Accept", text("application/json"))
_ABOUT_ITSELF = (_ACCEPT, ("X-Auth-Token", (OWN_TOKEN,)), ("X-Subject-Token", (OWN_TOKEN,)))
_AS_TOKEN = (_ACCEPT, ("X-Auth-Token", (SUBJECT_TOKEN,)))


def issue(action: str) -> Step:
    """Issue a token with a password, and capture it for later steps."""
    return replace(ask_for_token(action, by_password(), PROJECT), captures=_KEEP_TOKEN)


def about_itself(action: str, method: str, status: int) -> Step:
    """Return a call about the token that the iteration issued, authenticated with that token."""
    return Step(action, method, text("/auth/tokens"), _ABOUT_ITSELF, expect_status=(status,))


ISSUE_AND_VALIDATE = Scenario(
    name="KeystoneBasic.authenticate_user_and_validate_token",
    title="token issue, then validation",
    request="POST /v3/auth/tokens, GET /v3/auth/tokens (each token validated once, by itself)",
    steps=(
        issue("keystone_v3.fetch_token"),
        about_itself("keystone_v3.validate_token", "GET", 200),
    ),
)

# Keystone keeps each revocation until the token would have expired, and every validation checks
# them: this scenario slows its target down while it runs and for a while afterwards.
ISSUE_AND_REVOKE = Scenario(
    name="Keystone.issue_and_revoke_token",
    title="token issue, then revocation",
    request="POST /v3/auth/tokens, DELETE /v3/auth/tokens (leaves a revocation event each)",
    steps=(
        issue("keystone_v3.fetch_token"),
        about_itself("keystone_v3.revoke_token", "DELETE", 204),
    ),
)

ISSUE_UNSCOPED = Scenario(
    name="Keystone.issue_unscoped_token",
    title="unscoped token issue",
    request="POST /v3/auth/tokens (password, unscoped)",
    steps=(ask_for_token("keystone_v3.issue_unscoped_token", by_password(), "unscoped"),),
)

# No password is hashed: the difference to an issue with a password is the cost of the hash.
RESCOPE = Scenario(
    name="Keystone.rescope_token",
    title="token rescope",
    request="POST /v3/auth/tokens (token, project scope)",
    steps=(ask_for_token("keystone_v3.rescope_token", by_token(SUBJECT_TOKEN), PROJECT),),
)

CATALOG = Scenario(
    name="Keystone.get_catalog",
    title="catalog",
    request="GET /v3/auth/catalog (as each user)",
    steps=(Step("keystone_v3.get_catalog", "GET", text("/auth/catalog"), _AS_TOKEN),),
)

OWN_PROJECTS = Scenario(
    name="Keystone.list_own_projects",
    title="own projects",
    request="GET /v3/auth/projects (as each user)",
    steps=(Step("keystone_v3.list_own_projects", "GET", text("/auth/projects"), _AS_TOKEN),),
)

# No token, no database: measures web server and framework alone.
DISCOVER = Scenario(
    name="Keystone.discover",
    title="version discovery",
    request="GET /v3 (no token)",
    steps=(Step("keystone_v3.discover", "GET", (), (_ACCEPT,)),),
)

TOKEN_LIFE = {
    "issue-validate": ISSUE_AND_VALIDATE,
    "issue-revoke": ISSUE_AND_REVOKE,
    "issue-unscoped": ISSUE_UNSCOPED,
    "rescope": RESCOPE,
    "catalog": CATALOG,
    "projects": OWN_PROJECTS,
    "discover": DISCOVER,
}
