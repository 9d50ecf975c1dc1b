import json
import time
from dataclasses import replace

import pytest
from made_users import users

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.contexts.credentials import with_credentials
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.keystone.resources import Token, User
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.keystone.scenarios.model import SUBJECT_TOKEN
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits
from loadstone.plan.script import Captured, Column, OneTimeCode, Pause, Text, text

RUN = "20261121-0931-ab12cd"
LOAD = OpenLoad(rate_rps=5.0, duration_s=10.0)


def person(password="secret", name="u"):
    return User("u1", name, password, "p1", "project", "d1", "domain")


def fill(plan, template, row=0):
    """Fill a template as the engine does."""
    out = ""
    for part in template:
        match part:
            case Text(known):
                out += known
            case Column(column):
                out += plan.columns[column][row % len(plan.columns[column])]
            case Captured():
                out += "captured"
            case OneTimeCode():
                out += "123456"
    return out


@pytest.mark.parametrize("password", ['"', "\\", '\\"', "ü ∞ 𝄞", "\n\t\0", "{}<x>%s", "'; --"])
def test_any_password_survives_the_template(access, password):
    odd = person(password, name=f"user {password}")
    plan = compile_plan(SCENARIOS["issue"], access, [odd], {}, LOAD)
    (step,) = plan.steps
    user = json.loads(fill(plan, step.body))["auth"]["identity"]["password"]["user"]
    assert (user["password"], user["name"]) == (password, odd.name)
    crossed = json.loads(plan.to_json())
    assert crossed["columns"]["password"] == list(plan.columns["password"])


def test_the_body_is_what_keystone_documents(access):
    plan = compile_plan(SCENARIOS["issue"], access, [person()], {}, LOAD)
    (step,) = plan.steps
    assert (step.method, fill(plan, step.path)) == ("POST", "/v3/auth/tokens")
    assert json.loads(fill(plan, step.body)) == {
        "auth": {
            "identity": {
                "methods": ["password"],
                "password": {
                    "user": {"name": "u", "domain": {"name": "domain"}, "password": "secret"}
                },
            },
            "scope": {"project": {"name": "project", "domain": {"name": "domain"}}},
        }
    }
    headers = {name: fill(plan, value) for name, value in step.headers}
    assert headers["Content-Type"] == "application/json"


def test_each_iteration_takes_the_next_user(access):
    people = [person(f"pw{n}", f"u{n}") for n in range(3)]
    plan = compile_plan(SCENARIOS["issue"], access, people, {}, LOAD)
    bodies = [json.loads(fill(plan, plan.steps[0].body, row)) for row in range(4)]
    names = [body["auth"]["identity"]["password"]["user"]["name"] for body in bodies]
    assert names == ["u0", "u1", "u2", "u0"]


def test_tokens_are_issued_for_each_user_and_validated_by_the_admin(fake, access, journal):
    with users(access, RUN, Users(users_per_tenant=3), journal, str) as people:
        tokens = issue_tokens(access, people)
        plan = compile_plan(SCENARIOS["validate"], access, people, {"token": tokens}, LOAD)
        assert [fake.tokens[t]["id"] for t in plan.columns["token"]] == [u.id for u in people]
        assert fake.tokens[plan.columns["admin_token"][0]]["name"] == "admin"
    assert set(plan.columns) == {"token", "admin_token"}
    assert not [token for token in tokens if token.value in repr(tokens) + repr(plan)]


def test_the_prefix_of_the_service_stands_in_every_path(fake, url, variables):
    from loadstone.cloud import connect, from_environment

    fake.prefix = "/identity"
    with connect(from_environment({**variables, "OS_AUTH_URL": f"{url}/identity"})) as access:
        plan = compile_plan(SCENARIOS["issue"], access, [person()], {}, LOAD)
    assert fill(plan, plan.steps[0].path) == "/identity/v3/auth/tokens"
    assert (plan.origin.host, plan.origin.scheme) == ("127.0.0.1", "http")


def test_nobody_to_load_as_is_refused(access):
    with pytest.raises(InvalidInput, match="none was prepared"):
        compile_plan(SCENARIOS["issue"], access, (), {}, LOAD)
    with pytest.raises(InvalidInput, match="none was prepared"):
        compile_plan(SCENARIOS["validate"], access, [person()], {}, LOAD)


def test_tokens_that_die_before_the_load_ends_are_refused(fake, access, journal):
    fake.token_life_s = 400
    with users(access, RUN, Users(), journal, str) as people:
        tokens = issue_tokens(access, people)
    compile_plan(SCENARIOS["validate"], access, people, {"token": tokens}, LOAD)
    for load in (OpenLoad(5.0, 600.0), ClosedLoad(1, iterations=10**6, duration_s=390.0)):
        with pytest.raises(EnvironmentUnusable, match=r"\[token\] expiration"):
            compile_plan(SCENARIOS["validate"], access, people, {"token": tokens}, load)


def test_tokens_need_not_outlast_the_patience_of_a_task(fake, access, journal):
    fake.token_life_s = 300
    patient = Limits(drain_s=600.0)  # as with constant_for_duration
    with users(access, RUN, Users(), journal, str) as people:
        tokens = issue_tokens(access, people)
    for_200_s = ClosedLoad(1, duration_s=200.0)
    compile_plan(SCENARIOS["validate"], access, people, {"token": tokens}, for_200_s, patient)


def test_access_tokens_are_enough_for_a_load_of_unknown_duration(access):
    where = {"federated_auth": "/OS-FEDERATION", "federated_project_id": "1"}
    people = [replace(person(), credentials=where)]
    by_provider = {"access_token": [Token("x", time.time() + 300.0)]}  # Keycloak's default
    federated = SCENARIOS["federated-login"]
    short, long = ClosedLoad(1, iterations=10), ClosedLoad(1, duration_s=280.0)
    compile_plan(federated, access, people, by_provider, short, Limits(drain_s=180.0))
    with pytest.raises(EnvironmentUnusable, match=r"access tokens expire .* at the identity prov"):
        compile_plan(federated, access, people, by_provider, long)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_every_scenario_compiles_into_requests(access, journal, scenario):
    with users(access, RUN, Users(), journal, str) as people:
        made = with_credentials(access, people, scenario.needs)
        # What contexts.shared and an identity provider bring.
        more = {"tree_root": "0", "federated_auth": "/OS-FEDERATION", "federated_project_id": "1"}
        actors = [replace(user, credentials={**user.credentials, **more}) for user in made]
        elsewhere = dict.fromkeys(("access_token", "federated_token"), SUBJECT_TOKEN.column)
        tokens = {
            name: issue_tokens(access, actors, column=elsewhere.get(name, name))
            for name in scenario.token_columns
        }
        plan = compile_plan(scenario.of_run(RUN), access, actors, tokens, LOAD)
    for step in plan.steps:
        if isinstance(step, Pause):
            continue
        assert fill(plan, step.path).startswith("/v3")
        if step.body and ("Content-Type", text("application/json")) in step.headers:
            json.loads(fill(plan, step.body))
        assert all(fill(plan, value) for _, value in step.headers)


def test_tokens_and_users_that_do_not_match_row_by_row_are_refused(access, journal):
    with users(access, RUN, Users(users_per_tenant=2), journal, str) as people:
        tokens = issue_tokens(access, (*people, people[0]))
        with pytest.raises(InvalidInput, match="3 tokens were prepared for 2 users"):
            compile_plan(SCENARIOS["rescope"], access, people, {"token": tokens}, LOAD)
