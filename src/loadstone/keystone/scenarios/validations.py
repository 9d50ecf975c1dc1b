"""Validations of tokens other than a password's for a project."""

from loadstone.keystone.scenarios.model import (
    ACCESS_RULES_TOKEN,
    ADMIN_TOKEN,
    APPLICATION_CREDENTIAL_TOKEN,
    DOMAIN_TOKEN,
    SYSTEM_TOKEN,
    TRUST_TOKEN,
    Need,
    Scenario,
)
from loadstone.keystone.scenarios.tokens import OWN_TOKEN, about_itself, issue
from loadstone.plan.script import Captured, Column, Step, text

_ACCEPT = ("Accept", text("application/json"))
# Keystone refuses tokens with access rules to services that do not say that they keep to them.
_KEEPS_TO_ACCESS_RULES = ("OpenStack-Identity-Access-Rules", text("1.0"))


def _validation(action: str, token: Column | Captured, status: int = 200) -> Step:
    """Return the validation of a token by a service, with the administrator's token."""
    headers = (
        _ACCEPT,
        ("X-Auth-Token", (ADMIN_TOKEN,)),
        ("X-Subject-Token", (token,)),
        *((_KEEPS_TO_ACCESS_RULES,) if token == ACCESS_RULES_TOKEN else ()),
    )
    return Step(action, "GET", text("/auth/tokens"), headers, expect_status=(status,))


def _validate(what: str, token: Column, need: Need) -> Scenario:
    name = f"validate_{token.column}"
    return Scenario(
        name=f"Keystone.{name}",
        title=f"validation of {what}",
        request=f"GET /v3/auth/tokens (one service validates {what} of the users)",
        steps=(_validation(f"keystone_v3.{name}", token),),
        needs=(need,),
    )


# What a revoked token costs, and that it is refused: by every node, and whatever a cache still
# knows of it. A token that is still accepted fails the iteration.
VALIDATE_REVOKED = Scenario(
    name="Keystone.validate_revoked_token",
    title="token issue, validation, revocation, refused validation",
    request=(
        "POST /v3/auth/tokens, GET, DELETE, GET that must be refused (leaves a revocation event "
        "each)"
    ),
    steps=(
        issue("keystone_v3.fetch_token"),
        _validation("keystone_v3.validate_token", OWN_TOKEN),
        about_itself("keystone_v3.revoke_token", "DELETE", 204),
        _validation("keystone_v3.validate_revoked_token", OWN_TOKEN, status=404),
    ),
)

VALIDATIONS = {
    "validate-access-rules": _validate(
        "tokens with access rules", ACCESS_RULES_TOKEN, Need.ACCESS_RULES
    ),
    "validate-app-credential": _validate(
        "application credentials' tokens",
        APPLICATION_CREDENTIAL_TOKEN,
        Need.APPLICATION_CREDENTIAL,
    ),
    "validate-domain": _validate("domain tokens", DOMAIN_TOKEN, Need.DOMAIN_ROLE),
    "validate-revoked": VALIDATE_REVOKED,
    "validate-system": _validate("system tokens", SYSTEM_TOKEN, Need.SYSTEM_ROLE),
    "validate-trust": _validate("trusts' tokens", TRUST_TOKEN, Need.TRUST),
}
