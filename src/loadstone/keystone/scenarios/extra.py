"""Scenarios that Rally does not have: other ways to get a token, life cycles of other resources.

What iterations create is in the run's own domain or belongs to its users, and is removed with them.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.keystone.resources import ResourceKind
from loadstone.keystone.scenarios.authenticate import ask_for_token
from loadstone.keystone.scenarios.draft import PROJECT_ID, USER_ID, Draft, under
from loadstone.keystone.scenarios.model import TREE_PROJECTS, Need, Scenario
from loadstone.keystone.scenarios.tokens import about_itself, issue
from loadstone.plan.script import Captured, Column, JsonCapture, Text, text

if TYPE_CHECKING:
    from loadstone.keystone.scenarios.body import Tree

_DOMAIN = {"domain_id": (Column("domain_id"),)}
_VALIDATIONS = 5  # of each token of a chain
_RULE_ID = "/application_credential/access_rules/0/id"

ISSUE_BY_APPLICATION_CREDENTIAL = Scenario(
    name="Keystone.issue_token_by_application_credential",
    title="token issue by application credential",
    request="POST /v3/auth/tokens (application credential)",
    steps=(
        ask_for_token(
            "keystone_v3.issue_by_application_credential",
            {
                "methods": ["application_credential"],
                "application_credential": {
                    "id": (Column("application_credential_id"),),
                    "secret": (Column("application_credential_secret"),),
                },
            },
        ),
    ),
    needs=(Need.APPLICATION_CREDENTIAL,),
)

TOKEN_CHAIN = Scenario(
    name="Keystone.token_chain",
    title=f"token issue, {_VALIDATIONS} validations, revocation",
    request=f"POST /v3/auth/tokens, {_VALIDATIONS} GET, DELETE (leaves a revocation event each)",
    steps=(
        issue("keystone_v3.fetch_token"),
        *(
            about_itself(f"keystone_v3.validate_token#{number}", "GET", 200)
            for number in range(1, _VALIDATIONS + 1)
        ),
        about_itself("keystone_v3.revoke_token", "DELETE", 204),
    ),
)


def _listed(plural: str) -> Scenario:
    """List everything of a kind, as the administrator, with an existing token."""
    draft = Draft(f"Keystone.list_{plural}")
    draft.get(f"list_{plural}", f"/{plural}")
    request = f"GET /v3/{plural} (as the administrator)"
    return replace(draft.scenario(f"list of {plural}"), request=request)


def _application_credential() -> Scenario:
    draft = Draft("Keystone.create_and_delete_application_credential")
    draft.as_user = True
    draft.leaves_with_users = ("application credentials",)
    path = under("/users", USER_ID, text("application_credentials"))
    kind = "application_credential"
    body = {kind: {"name": draft.thing()}}
    keep = (JsonCapture(f"{kind}_id", f"/{kind}/id"),)
    draft.call(f"keystone_v3.create_{kind}", "POST", path, body, keep)
    place = under("/users", USER_ID, text("application_credentials"), (Captured(f"{kind}_id"),))
    draft.call(f"keystone_v3.delete_{kind}", "DELETE", place)
    return draft.scenario("application credential, made and deleted")


# Keystone keeps an access rule until it is deleted by itself, after the credential that used it.
def _access_rules() -> Scenario:
    draft = Draft("Keystone.create_and_delete_access_rules")
    draft.as_user = True
    draft.leaves_with_users = ("access rules",)
    mine = under("/users", USER_ID)
    kind = "application_credential"
    # Rules with the same content are one row, so each iteration has a path of its own.
    rule: Tree = {"service": "compute", "method": "GET", "path": (Text("/v2.1/"), *draft.thing())}
    body: Tree = {kind: {"name": draft.thing(), "access_rules": [rule]}}
    keep = (JsonCapture(f"{kind}_id", f"/{kind}/id"), JsonCapture("rule_id", _RULE_ID))
    draft.call(f"keystone_v3.create_{kind}", "POST", (*mine, Text(f"/{kind}s")), body, keep)
    draft.call("keystone_v3.list_access_rules", "GET", (*mine, Text("/access_rules")))
    place = (*mine, Text(f"/{kind}s/"), Captured(f"{kind}_id"))
    draft.call(f"keystone_v3.delete_{kind}", "DELETE", place)
    place = (*mine, Text("/access_rules/"), Captured("rule_id"))
    draft.call("keystone_v3.delete_access_rule", "DELETE", place)
    return draft.scenario("application credential with an access rule, made and deleted")


def _trust() -> Scenario:
    draft = Draft("Keystone.create_and_delete_trust")
    draft.as_user = True
    draft.leaves_with_users = ("trusts",)
    trust: dict[str, Tree] = {
        "trustor_user_id": USER_ID,
        "trustee_user_id": USER_ID,
        "project_id": PROJECT_ID,
        "impersonation": False,
        "roles": [{"name": "member"}],
    }
    keep = (JsonCapture("trust_id", "/trust/id"),)
    draft.call("keystone_v3.create_trust", "POST", text("/OS-TRUST/trusts"), {"trust": trust}, keep)
    place = under("/OS-TRUST/trusts", (Captured("trust_id"),))
    draft.call("keystone_v3.get_trust", "GET", place)
    draft.call("keystone_v3.delete_trust", "DELETE", place)
    return draft.scenario("trust, made, read and deleted")


# When a user leaves a group, Keystone revokes all of the user's tokens: one event per iteration.
def _group() -> Scenario:
    draft = Draft("Keystone.create_and_delete_group")
    draft.leaves_with_users = ("groups",)
    group = draft.create(ResourceKind.GROUP, _DOMAIN)
    member = under("/groups", group, text("users"), USER_ID)
    draft.call("keystone_v3.add_user_to_group", "PUT", member)
    draft.get("list_group_users", "/groups", group, text("users"))
    draft.call("keystone_v3.remove_user_from_group", "DELETE", member)
    draft.delete(ResourceKind.GROUP, group)
    return replace(draft.scenario("group, made, joined, left and deleted"), revokes_tokens=True)


def _user() -> Scenario:
    draft = Draft("Keystone.create_and_delete_user")
    draft.leaves_with_users = ("users",)
    password = draft.secret("new_password", "Loadst0ne-user!")
    draft.delete(
        ResourceKind.USER, draft.create(ResourceKind.USER, {**_DOMAIN, "password": password})
    )
    return draft.scenario("user with a password, made and deleted")


def _domain() -> Scenario:
    draft = Draft("Keystone.create_and_delete_domain")
    draft.leaves_with_users = ("domains",)
    domain = draft.create(ResourceKind.DOMAIN, {})
    draft.update(ResourceKind.DOMAIN, domain, {"enabled": False})
    draft.delete(ResourceKind.DOMAIN, domain)
    return draft.scenario("domain, made, disabled and deleted")


def _project_tags() -> Scenario:
    draft = Draft("Keystone.tag_project")
    draft.leaves_with_users = ("projects",)
    project = draft.create(ResourceKind.PROJECT, _DOMAIN)
    tags = under("/projects", project, text("tags"))
    body: Tree = {"tags": ["gold", draft.thing()]}
    draft.call("keystone_v3.update_project_tags", "PUT", tags, body, status=200)
    draft.get("list_project_tags", "/projects", project, text("tags"))
    tagged = (Text("/projects?tags="), *draft.thing())
    draft.call("keystone_v3.list_projects_with_tag", "GET", tagged)
    draft.delete(ResourceKind.PROJECT, project)
    return draft.scenario("project, made, tagged, found by its tag and deleted")


def _subtree() -> Scenario:
    draft = Draft("Keystone.get_project_subtree")
    tree = (*under("/projects", (Column("tree_root"),)), Text("?subtree_as_ids"))
    draft.call("keystone_v3.get_project_subtree", "GET", tree)
    return replace(
        draft.scenario(f"tree of {TREE_PROJECTS:,} projects"),
        request="GET /v3/projects/{}?subtree_as_ids (as the administrator)",
        needs=(Need.PROJECT_TREE,),
    )


_LEVELS = 4  # Keystone's default limit is 5, and the domain is the first


def _project_tree() -> Scenario:
    draft = Draft("Keystone.create_and_delete_project_tree")
    draft.leaves_with_users = ("projects",)
    projects = [draft.create(ResourceKind.PROJECT, _DOMAIN)]
    for number in range(2, _LEVELS + 1):
        below = {**_DOMAIN, "parent_id": projects[-1]}
        projects.append(draft.create(ResourceKind.PROJECT, below, number=number))
    tree = (*under("/projects", projects[0]), Text("?subtree_as_ids"))
    draft.call("keystone_v3.get_project_subtree", "GET", tree)
    parents = (*under("/projects", projects[-1]), Text("?parents_as_ids"))
    draft.call("keystone_v3.get_project_parents", "GET", parents)
    for project in reversed(projects):
        draft.delete(ResourceKind.PROJECT, project)
    return draft.scenario(f"{_LEVELS} projects in each other, made, listed as a tree and deleted")


EXTRA_SCENARIOS = {
    "access-rules-life": _access_rules(),
    "app-credential": ISSUE_BY_APPLICATION_CREDENTIAL,
    "app-credential-life": _application_credential(),
    "domain-life": _domain(),
    "endpoint-list": _listed("endpoints"),
    "group-life": _group(),
    "project-list": _listed("projects"),
    "project-subtree": _subtree(),
    "project-tags": _project_tags(),
    "project-tree": _project_tree(),
    "service-list": _listed("services"),
    "token-chain": TOKEN_CHAIN,
    "trust-life": _trust(),
    "user-life": _user(),
    "user-list": _listed("users"),
}
