"""Validations of tokens other than a password's for a project."""

from collections.abc import Iterator
from dataclasses import replace

from loadstone.keystone.scenarios.authenticate import VALIDATE_TOKEN, validation
from loadstone.keystone.scenarios.model import (
    ACCESS_RULES_TOKEN,
    APPLICATION_CREDENTIAL_TOKEN,
    DOMAIN_TOKEN,
    FEDERATED_TOKEN,
    GROUPS,
    SYSTEM_TOKEN,
    TRUST_TOKEN,
    Need,
    Scenario,
)
from loadstone.keystone.scenarios.tokens import OWN_TOKEN, about_itself, issue
from loadstone.plan.script import Column, Pause, StatusCondition, Step

WORKERS = 4  # validations before a revocation whose delay is measured
_AFTER_S = (0, 1, 5, 15, 60)  # the revocation


def _validate(what: str, token: Column, need: Need) -> Scenario:
    name = f"validate_{token.column}"
    return Scenario(
        name=f"Keystone.{name}",
        title=f"validation of {what}",
        request=f"GET /v3/auth/tokens (one service validates {what} of the users)",
        steps=(validation(f"keystone_v3.{name}", token),),
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
        validation("keystone_v3.validate_token", OWN_TOKEN),
        about_itself("keystone_v3.revoke_token", "DELETE", 204),
        validation("keystone_v3.validate_revoked_token", OWN_TOKEN, status=404),
    ),
)


def _repeated(step: Step, count: int) -> Iterator[Step]:
    """Yield a step and its repeats, whose actions have numbers from 2."""
    yield step
    for number in range(2, count + 1):
        yield replace(step, action=f"{step.action}#{number}")


def _revocation_delay() -> Scenario:
    """Return the scenario that tells how long a revoked token is accepted.

    Which worker of which node answers is chance: over many iterations, the share of refusals at
    each time says how many of them know of the revocation by then.
    """
    validate = validation("keystone_v3.validate_token", OWN_TOKEN)
    steps: list[Step | Pause] = [
        issue("keystone_v3.fetch_token"),
        # For the caches of several workers.
        *_repeated(validate, WORKERS),
        about_itself("keystone_v3.revoke_token", "DELETE", 204),
    ]
    # A token whose revocation was not sent is rightly accepted.
    revoked = StatusCondition("keystone_v3.revoke_token", (204,))
    passed_s = 0
    for at_s in _AFTER_S:
        if at_s > passed_s:
            wait_s = float(at_s - passed_s)
            name = f"wait_until_{at_s}_s"
            steps.append(Pause(name, wait_s, wait_s, only_if=revoked, always=True))
        refused = validation(f"keystone_v3.refused_after_{at_s}_s", OWN_TOKEN, status=404)
        steps.append(replace(refused, only_if=revoked, always=True))
        passed_s = at_s
    times = ", ".join(str(at_s) for at_s in _AFTER_S)
    return Scenario(
        name="Keystone.wait_for_revocation",
        title="how long a revoked token is accepted",
        request=(
            f"POST /v3/auth/tokens, {WORKERS} GET, DELETE, then GET after {times} s that must be "
            "refused (leaves a revocation event each)"
        ),
        steps=tuple(steps),
    )


VALIDATE_BY_GROUPS = replace(
    VALIDATE_TOKEN,
    name="Keystone.validate_token_by_groups",
    title=f"validation of tokens of users in {GROUPS} groups",
    request=f"GET /v3/auth/tokens (one service validates tokens of users in {GROUPS} groups)",
    needs=(Need.GROUPS,),
)


def _polling(name: str, title: str, validations: int) -> Scenario:
    validate = validation("keystone_v3.validate_token", OWN_TOKEN)
    return Scenario(
        name=f"Keystone.{name}",
        title=title,
        request=f"POST /v3/auth/tokens, {validations} GET (as the service that is asked)",
        steps=(issue("keystone_v3.fetch_token"), *_repeated(validate, validations)),
    )


# A service logs in and asks another one ten times, as nova-compute asks the placement service.
# keystonemiddleware in the other validates the token each time, or once if it has a cache (default:
# token_cache_time = 300 s).
POLLS = 10
POLLING = _polling("poll_service", f"login, then {POLLS} calls of a service", POLLS)
POLLING_CACHED = _polling(
    "poll_service_with_cache", f"login, then {POLLS} calls of a service with a token cache", 1
)

VALIDATIONS = {
    "revocation-delay": _revocation_delay(),
    "service-poll": POLLING,
    "service-poll-cached": POLLING_CACHED,
    "validate-access-rules": _validate(
        "tokens with access rules", ACCESS_RULES_TOKEN, Need.ACCESS_RULES
    ),
    "validate-app-credential": _validate(
        "application credentials' tokens",
        APPLICATION_CREDENTIAL_TOKEN,
        Need.APPLICATION_CREDENTIAL,
    ),
    "validate-federated": _validate("federated users' tokens", FEDERATED_TOKEN, Need.FEDERATION),
    "validate-groups": VALIDATE_BY_GROUPS,
    "validate-domain": _validate("domain tokens", DOMAIN_TOKEN, Need.DOMAIN_ROLE),
    "validate-revoked": VALIDATE_REVOKED,
    "validate-system": _validate("system tokens", SYSTEM_TOKEN, Need.SYSTEM_ROLE),
    "validate-trust": _validate("trusts' tokens", TRUST_TOKEN, Need.TRUST),
}
