"""Rally's own sequences, as they were recorded between real Rally and Keystone 30.0.0."""

import pytest
from rally_actions import ACTIONS

from loadstone.keystone.scenarios.atomics import OUTSIDE, atomics
from loadstone.keystone.scenarios.build_context import BuildContext
from loadstone.keystone.scenarios.model import ROOT
from loadstone.plan.script import Text
from loadstone.rally.scenarios import scenario
from loadstone.rally.task.catalogue.identity import KEYSTONE

RUN = "20261121-0931-ab12cd"
LOG_IN = ["GET /", "POST /auth/tokens", "GET /", "POST /auth/tokens", "GET /"]
DOMAIN = ["GET /domains/Default", "GET /domains?name=Default"]
NEW_USER = [*DOMAIN, "POST /users"]
IN_PROJECT = [*NEW_USER, "GET /roles", "PUT /projects/ID/users/ID/roles/member-id"]
EC2 = "/users/ID/credentials/OS-EC2"
RECORDED = {
    "create_user": [*NEW_USER, "GET /users/ID"],
    "create_delete_user": [*NEW_USER, "GET /users/ID", "DELETE /users/ID"],
    "create_user_set_enabled_and_delete": [
        *NEW_USER,
        "GET /users/ID",
        "PATCH /users/ID",
        "DELETE /users/ID",
    ],
    "create_tenant": [*DOMAIN, "POST /projects"],
    "authenticate_user_and_validate_token": ["POST /auth/tokens", "GET /", "GET /auth/tokens"],
    "create_tenant_with_users": [
        *DOMAIN,
        "POST /projects",
        *IN_PROJECT,
        *IN_PROJECT,
        "GET /users/ID",
        "GET /users/ID",
    ],
    "create_and_list_users": [*NEW_USER, "GET /users/ID", "GET /users"],
    "create_and_list_tenants": [*DOMAIN, "POST /projects", "GET /projects"],
    "add_and_remove_user_role": [
        "POST /roles",
        "PUT /projects/ID/users/ID/roles/ID",
        "DELETE /projects/ID/users/ID/roles/ID",
    ],
    "create_and_delete_role": ["POST /roles", "DELETE /roles/ID"],
    "create_add_and_list_user_roles": [
        "POST /roles",
        "PUT /projects/ID/users/ID/roles/ID",
        "GET /projects/ID/users/ID/roles",
    ],
    "get_entities": [
        *DOMAIN,
        "POST /projects",
        *IN_PROJECT,
        "GET /users/ID",
        "POST /roles",
        "GET /projects/ID",
        "GET /users/ID",
        "GET /roles/ID",
        "GET /services",
        "GET /services/keystone-id",
    ],
    "create_and_delete_service": ["POST /services", "DELETE /services/ID"],
    "create_update_and_delete_tenant": [
        *DOMAIN,
        "POST /projects",
        "PATCH /projects/ID",
        "DELETE /projects/ID",
    ],
    "create_user_update_password": [*NEW_USER, "GET /users/ID", "PATCH /users/ID"],
    "create_and_list_services": ["POST /services", "GET /services"],
    "create_and_list_ec2credentials": [f"POST {EC2}", f"GET {EC2}"],
    "create_and_delete_ec2credential": [f"POST {EC2}", f"DELETE {EC2}/ID"],
    "create_and_get_role": ["POST /roles", "GET /roles/ID"],
    "create_and_list_roles": ["POST /roles", "GET /roles"],
    "create_and_update_user": [*NEW_USER, "GET /users/ID", "PATCH /users/ID", "GET /users/ID"],
}
ARGUMENTS = {
    "create_tenant_with_users": {"users_per_tenant": 2},
    "create_and_update_user": {"update_user_kwargs": {"enabled": False}},
}


class ExistingResources:
    """Finds everything."""

    def role_id(self, name):
        return f"{name}-id"

    def domain_id(self, name_or_id):
        return f"{name_or_id}-id"

    def service_id(self, name):
        return f"{name}-id"


def as_rally_sends(name, arguments=None):
    arguments = arguments or ARGUMENTS.get(name.rpartition(".")[2], {})
    return scenario(name, arguments, BuildContext(RUN, ExistingResources()), rally_requests=True)


def requests(built):
    return [
        f"{step.method} "
        + "".join(
            part.text if isinstance(part, Text) else "/" if part == ROOT else "ID"
            for part in step.path
        )
        for step in built.steps
    ]


def test_authenticate_sends_five_requests_in_one_action():
    built = as_rally_sends("Authenticate.keystone")
    assert requests(built) == LOG_IN
    assert {step.action for step in built.steps} == {"authenticate.keystone"}
    assert built.connection == "iteration"


@pytest.mark.parametrize("name", RECORDED)
def test_a_scenario_sends_what_rally_was_seen_to_send(name):
    built = as_rally_sends(f"KeystoneBasic.{name}")
    assert requests(built) == [*LOG_IN, *LOG_IN, "GET /", *RECORDED[name]]


@pytest.mark.parametrize("entry", KEYSTONE, ids=lambda entry: entry.name)
def test_the_actions_stay_those_of_rally(entry):
    built = as_rally_sends(entry.name)
    names = [
        one.name.removeprefix("keystone_v3.")
        for one in atomics([step.action for step in built.steps])
        if not one.name.startswith(OUTSIDE)
    ]
    assert names == ACTIONS[entry.name].split()


IN_DOMAIN = {"domain_name": "Default"}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("create_and_get_role", IN_DOMAIN, [*DOMAIN, "POST /roles", "GET /roles/ID"]),
        (
            "create_and_list_roles",
            {"create_role_kwargs": {}, "list_role_kwargs": IN_DOMAIN},
            ["POST /roles", *DOMAIN, "GET /roles"],
        ),
        (
            "create_and_list_roles",
            {"create_role_kwargs": IN_DOMAIN, "list_role_kwargs": {}},
            [*DOMAIN, "POST /roles", "GET /roles"],
        ),
        ("create_user", {"project_id": "p", **IN_DOMAIN}, None),
    ],
)
def test_a_domain_is_looked_up_where_rally_looks_it_up(name, arguments, expected):
    built = as_rally_sends(f"KeystoneBasic.{name}", arguments)
    in_project = [*NEW_USER, "GET /roles", "PUT /projects/p/users/ID/roles/member-id"]
    sent = [*LOG_IN, *LOG_IN, "GET /", *(expected or [*in_project, "GET /users/ID"])]
    assert requests(built) == sent


def test_users_of_a_project_in_another_domain_are_made_in_the_default_one():
    arguments = {"users_per_tenant": 1, "domain_name": "Other"}
    sent = requests(as_rally_sends("KeystoneBasic.create_tenant_with_users", arguments))
    assert sent.count("GET /domains/Other") == sent.count("GET /domains/Default") == 1


def test_a_user_reads_as_himself_and_the_admin_as_the_admin():
    for name, session in (("create_user", "admin"), ("create_and_list_ec2credentials", "user")):
        last = as_rally_sends(f"KeystoneBasic.{name}").steps[-1]
        assert dict(last.headers)["X-Auth-Token"][0].capture == f"{session}_session"
