"""Scenarios that Rally does not have: other ways to get a token, life cycles of other resources.

What iterations create is in the run's own domain or belongs to its users, and is removed with them.
"""

from typing import TYPE_CHECKING

from loadstone.keystone.resources import ResourceKind
from loadstone.keystone.scenarios.draft import PROJECT_ID, USER_ID, Draft, under
from loadstone.keystone.scenarios.model import ADMIN_TOKEN, JSON_HEADERS, Scenario, filled
from loadstone.keystone.scenarios.tokens import about_itself, issue
from loadstone.plan.script import Captured, Column, Step, text

if TYPE_CHECKING:
    from loadstone.keystone.scenarios.body import Tree

_DOMAIN = {"domain_id": (Column("domain_id"),)}
DEFAULT_VALIDATIONS = 5

ISSUE_BY_APPLICATION_CREDENTIAL = Scenario(
    name="Keystone.issue_token_by_application_credential",
    title="token issue by application credential",
    request="POST /v3/auth/tokens (application credential)",
    steps=(
        Step(
            action="keystone_v3.issue_by_application_credential",
            method="POST",
            path=text("/auth/tokens"),
            headers=JSON_HEADERS,
            body=filled(
                '{"auth":{"identity":{"methods":["application_credential"],'
                '"application_credential":{"id":"<id>","secret":"<secret>"}}}}',
                id=Column("application_credential_id"),
                secret=Column("application_credential_secret"),
            ),
            expect_status=(201,),
        ),
    ),
    goes_with_users="application credentials",
)


def token_chain(validations: int) -> Scenario:
    """Issue a token, validate it this many times, revoke it."""
    return Scenario(
        name="Keystone.token_chain",
        title=f"token issue, {validations} validations, revocation",
        request=f"POST /v3/auth/tokens, {validations} GET, DELETE (leaves a revocation event each)",
        steps=(
            issue("keystone_v3.fetch_token"),
            *(
                about_itself(f"keystone_v3.validate_token#{number}", "GET", 200)
                for number in range(1, validations + 1)
            ),
            about_itself("keystone_v3.revoke_token", "DELETE", 204),
        ),
    )


def _listed(plural: str) -> Scenario:
    """List everything of a kind, as the administrator, with an existing token."""
    return Scenario(
        name=f"Keystone.list_{plural}",
        title=f"list of {plural}",
        request=f"GET /v3/{plural} (as the administrator)",
        steps=(
            Step(
                action=f"keystone_v3.list_{plural}",
                method="GET",
                path=text(f"/{plural}"),
                headers=(("Accept", text("application/json")), ("X-Auth-Token", (ADMIN_TOKEN,))),
                expect_status=(200,),
            ),
        ),
    )


def _application_credential() -> Scenario:
    draft = Draft("Keystone.create_and_delete_application_credential")
    draft.as_user = True
    draft.goes_with_users = "application credentials"
    path = under("/users", USER_ID, text("application_credentials"))
    kind = "application_credential"
    body = {kind: {"name": draft.thing()}}
    draft.call(f"keystone_v3.create_{kind}", "POST", path, body, (f"{kind}_id", f"/{kind}/id"))
    place = under("/users", USER_ID, text("application_credentials"), (Captured(f"{kind}_id"),))
    draft.call(f"keystone_v3.delete_{kind}", "DELETE", place)
    return draft.scenario("application credential, made and deleted")


def _trust() -> Scenario:
    draft = Draft("Keystone.create_and_delete_trust")
    draft.as_user = True
    draft.goes_with_users = "trusts"
    trust: dict[str, Tree] = {
        "trustor_user_id": USER_ID,
        "trustee_user_id": USER_ID,
        "project_id": PROJECT_ID,
        "impersonation": False,
        "roles": [{"name": "member"}],
    }
    keep = ("trust_id", "/trust/id")
    draft.call("keystone_v3.create_trust", "POST", text("/OS-TRUST/trusts"), {"trust": trust}, keep)
    place = under("/OS-TRUST/trusts", (Captured("trust_id"),))
    draft.call("keystone_v3.get_trust", "GET", place)
    draft.call("keystone_v3.delete_trust", "DELETE", place)
    return draft.scenario("trust, made, read and deleted")


# When a user leaves a group, Keystone revokes all of the user's tokens: one event per iteration.
def _group() -> Scenario:
    draft = Draft("Keystone.create_and_delete_group")
    draft.goes_with_users = "groups"
    group = draft.create(ResourceKind.GROUP, _DOMAIN)
    member = under("/groups", group, text("users"), USER_ID)
    draft.call("keystone_v3.add_user_to_group", "PUT", member)
    draft.get("list_group_users", "/groups", group, text("users"))
    draft.call("keystone_v3.remove_user_from_group", "DELETE", member)
    draft.delete(ResourceKind.GROUP, group)
    return draft.scenario("group, made, joined, left and deleted")


def _user() -> Scenario:
    draft = Draft("Keystone.create_and_delete_user")
    draft.goes_with_users = "users"
    password = draft.secret("new_password", "Loadst0ne-user!")
    draft.delete(
        ResourceKind.USER, draft.create(ResourceKind.USER, {**_DOMAIN, "password": password})
    )
    return draft.scenario("user with a password, made and deleted")


def _domain() -> Scenario:
    draft = Draft("Keystone.create_and_delete_domain")
    draft.goes_with_users = "domains"
    domain = draft.create(ResourceKind.DOMAIN, {})
    draft.update(ResourceKind.DOMAIN, domain, {"enabled": False})
    draft.delete(ResourceKind.DOMAIN, domain)
    return draft.scenario("domain, made, disabled and deleted")


EXTRA_SCENARIOS = {
    "app-credential": ISSUE_BY_APPLICATION_CREDENTIAL,
    "app-credential-life": _application_credential(),
    "domain-life": _domain(),
    "endpoint-list": _listed("endpoints"),
    "group-life": _group(),
    "service-list": _listed("services"),
    "token-chain": token_chain(DEFAULT_VALIDATIONS),
    "trust-life": _trust(),
    "user-life": _user(),
    "user-list": _listed("users"),
}
