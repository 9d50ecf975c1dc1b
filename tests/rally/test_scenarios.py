import re

import pytest
import requests
from rally_actions import ACTIONS
from stated import stated

from loadstone.errors import InvalidInput
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.resources import is_of_run
from loadstone.keystone.scenarios.atomics import atomics
from loadstone.keystone.scenarios.build_context import BuildContext
from loadstone.plan.load import ClosedLoad
from loadstone.plan.script import Text
from loadstone.rally.functions.catalogue import FUNCTIONS
from loadstone.rally.scenarios import is_data, scenario
from loadstone.rally.task.catalogue.identity import AUTHENTICATE, KEYSTONE
from loadstone.rally.task.catalogue.scenarios import SCENARIOS as CATALOGUE

RUN = "20261121-0931-ab12cd"


class ExistingResources:
    """Finds everything, under an id that says what was asked for."""

    def role_id(self, name):
        return f"role-{name}"

    def domain_id(self, name_or_id):
        return f"domain-{name_or_id}"

    def service_id(self, name):
        return f"service-{name}"


LOAD = ClosedLoad(workers=1, iterations=1)
GROUND = BuildContext(RUN, ExistingResources())
LEAST = {"KeystoneBasic.create_tenant_with_users": {"users_per_tenant": 2}}


@pytest.mark.parametrize("entry", [*KEYSTONE, AUTHENTICATE[0]], ids=lambda entry: entry.name)
def test_the_actions_are_those_of_rally(entry):
    built = scenario(entry.name, LEAST.get(entry.name, {}), GROUND)
    names = [
        one.name.removeprefix("keystone_v3.") for one in atomics([s.action for s in built.steps])
    ]
    assert names == ACTIONS[entry.name].split()


@pytest.mark.parametrize("entry", [*KEYSTONE, AUTHENTICATE[0]], ids=lambda entry: entry.name)
def test_what_is_sent_is_what_is_stated(entry):
    built = scenario(entry.name, LEAST.get(entry.name, {}), GROUND)
    sent = [
        f"{step.method} "
        + "".join(
            re.sub("(role|service)-.*", "ID", part.text) if isinstance(part, Text) else "ID"
            for part in step.path
        )
        for step in built.steps
    ]
    assert sent == stated()[entry.name]


@pytest.mark.parametrize(("as_rally", "most"), [(False, 84), (True, 40)])
def test_an_iteration_of_more_requests_than_the_engine_numbers_is_refused(as_rally, most):
    name = "KeystoneBasic.create_tenant_with_users"
    scenario(name, {"users_per_tenant": most}, GROUND, rally_requests=as_rally)
    with pytest.raises(InvalidInput, match=r"users_per_tenant: .* sends 255 at most"):
        scenario(name, {"users_per_tenant": most + 1}, GROUND, rally_requests=as_rally)


def test_a_number_of_users_that_could_not_even_be_built_is_refused_at_once():
    arguments = {"users_per_tenant": 10**12}
    with pytest.raises(InvalidInput, match=r"more than 1,000,000,000,000 requests"):
        scenario("KeystoneBasic.create_tenant_with_users", arguments, GROUND)


def test_every_scenario_is_either_data_or_a_function():
    assert all(is_data(entry.name) for entry in KEYSTONE)
    assert {name for name in CATALOGUE if not is_data(name)} == set(FUNCTIONS)


def test_names_of_two_stretches_of_load_differ_and_are_known_as_the_runs_own():
    first, second = (scenario("KeystoneBasic.create_user", {}, GROUND) for _ in range(2))
    assert first.values["made"] != second.values["made"]
    assert is_of_run(RUN, first.values["made"][0] + "17-2")


def test_a_password_of_the_file_is_not_in_the_steps():
    built = scenario("KeystoneBasic.create_user", {"password": "s3cret"}, GROUND)
    assert "s3cret" not in repr(built)
    assert built.values["new_password"] == ("s3cret",)


def test_users_of_a_project_are_made_one_after_the_other():
    built = scenario("KeystoneBasic.create_tenant_with_users", {"users_per_tenant": 3}, GROUND)
    third = "keystone_v3.create_users/keystone_v3.create_user#3"
    assert [step.action for step in built.steps[-3:]] == [
        third,
        f"{third}/keystone_v3.list_roles",
        f"{third}/keystone_v3.add_role",
    ]
    assert len(built.steps) == 1 + 3 * 3


@pytest.mark.parametrize(
    "url",
    [
        "http://h/a b?wsdl",
        "http://h/?q=caf%E9",  # Latin-1
        "http://h/?a=1;b=2&c",
        "http://h/x%zz?p=100%",
        "http://h?a=b+c&d=%2F/é",
        "http://h/a/[b]?x=[1]|'\"",
        "http://h/a?b?c=d",
    ],
)
@pytest.mark.parametrize("params", [{}, {"z": [1, "x y"], "n": None}])
def test_a_url_is_sent_as_the_library_of_rally_sends_it(url, params):
    wanted = {"url": url, "method": "GET", "status_code": 200, "params": params}
    (path,) = scenario("HttpRequests.check_request", wanted).values["path"]
    assert f"/{path}" == requests.Request("GET", url, params=params).prepare().path_url


def test_a_request_of_the_file_goes_where_its_url_says():
    wanted = {
        "url": "https://shop.example/a b?x=1",
        "method": "post",
        "status_code": 200,
        "params": {"y": "2"},
        "headers": {"X-Key": "s3cret"},
        "json": {"a": [1]},
        "auth": ["ann", "pw"],
    }
    built = scenario("HttpRequests.check_request", wanted)
    assert (built.origin.scheme, built.origin.host, built.origin.port) == (
        "https",
        "shop.example",
        443,
    )
    (step,) = built.steps
    assert (step.method, step.expect_status) == ("POST", (200,))
    assert built.values["path"] == ("a%20b?x=1&y=2",)
    assert built.values["body"] == ('{"a": [1]}',)
    assert [name for name, _ in step.headers] == ["X-Key", "Content-Type", "Authorization"]
    assert "s3cret" not in repr(built)
    assert compile_plan(built, None, (), {}, LOAD).columns["body"] == ('{"a": [1]}',)


def test_a_host_that_is_an_ipv6_address_is_shown_in_brackets():
    wanted = {"url": "http://[::1]:8080/x", "method": "GET", "status_code": 200}
    assert scenario("HttpRequests.check_request", wanted).request == "GET http://[::1]:8080"


def test_one_of_several_requests_is_chosen_at_random():
    requests = [{"url": f"http://h:81/{n}", "method": "GET"} for n in range(3)]
    built = scenario(
        "HttpRequests.check_random_request", {"requests": requests, "status_code": 200}
    )
    assert set(built.values["path"]) == {"0", "1", "2"}
    requests[1]["method"] = "PUT"
    with pytest.raises(InvalidInput, match="same scheme"):
        scenario("HttpRequests.check_random_request", {"requests": requests, "status_code": 200})


def test_a_request_may_have_a_status_of_its_own_if_all_have_the_same():
    requests = [{"url": f"http://h/{n}", "method": "GET", "status_code": 404} for n in range(2)]
    name, wanted = "HttpRequests.check_random_request", {"requests": requests, "status_code": 200}
    (step,) = scenario(name, wanted).steps
    assert step.expect_status == (404,)
    del requests[1]["status_code"]
    with pytest.raises(InvalidInput, match="status_code"):
        scenario(name, wanted)
    requests[1]["status_code"] = "404"
    with pytest.raises(InvalidInput, match="status_code: must be a whole number"):
        scenario(name, wanted)


@pytest.mark.parametrize("fields", [{"a": None, "b": ["x", None, 1]}, {"a": {"k": 1}}, {"a": None}])
def test_fields_are_sent_as_the_library_of_rally_sends_them(fields):
    wanted = {"url": "http://h/", "method": "POST", "status_code": 200, "data": fields}
    built = scenario("HttpRequests.check_request", wanted)
    theirs = requests.Request("POST", "http://h/", data=fields).prepare()
    assert "".join(built.values.get("body", "")) == theirs.body
    assert [name for name, _ in built.steps[0].headers] == ["Content-Type"]


def test_a_certificate_is_verified_unless_the_file_says_no():
    wanted = {"url": "https://h/", "method": "GET", "status_code": 200}
    verified = [
        scenario("HttpRequests.check_request", {**wanted, **more}).origin.tls.verify
        for more in ({}, {"verify": None}, {"verify": True}, {"verify": False})
    ]
    assert verified == [True, True, True, False]


def test_names_of_headers_differ_in_more_than_their_case():
    wanted = {
        "url": "http://h/",
        "method": "GET",
        "status_code": 200,
        "headers": {"authorization": "x", "X-A": "1", "x-a": "2"},
        "auth": ["ann", "pw"],
    }
    built = scenario("HttpRequests.check_request", wanted)
    assert [name for name, _ in built.steps[0].headers] == ["Authorization", "x-a"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"timeout": 1}, "timeout: requests have no time-out of their own"),
        ({"params": "a=1"}, "params: must be a mapping"),
        ({"headers": ["a"]}, "headers: must be a mapping"),
        ({"auth": "ann:pw"}, "auth: must be a list of user and password"),
        ({"data": [["a", 1]]}, "data: must be text or a mapping"),
        ({"status_code": 100}, "status_code: must be from 200 to 999, not 100"),
        ({"method": "G T"}, "method: 'G T' is not an HTTP method"),
        ({"method": None}, "method: None is not an HTTP method"),
        ({"headers": {"X Y": 1}}, "headers: 'X Y' is not the name of a header"),
        ({"headers": {"X-A": "a\nb"}}, "headers: the value of 'X-A' must be one line of text"),
        ({"headers": {"Content-Length": 1}}, "is written by the load generator; leave it out"),
    ],
)
def test_an_argument_that_would_be_dropped_is_refused(more, words):
    wanted = {"url": "http://h/", "method": "POST", "status_code": 200}
    with pytest.raises(InvalidInput, match=words):
        scenario("HttpRequests.check_request", {**wanted, **more})


def test_a_request_is_as_requests_makes_it():
    built = scenario(
        "HttpRequests.check_request",
        {
            "url": "https://h/",
            "method": "POST",
            "status_code": 200,
            "verify": "/ca.pem",
            "params": {"a": 1, "b": None},
            "headers": {"X": None},
            "data": {},
            "json": [1],
        },
    )
    assert (built.origin.tls.verify, built.origin.tls.ca_file) == (True, "/ca.pem")
    assert built.values["path"] == ("?a=1",)
    assert built.values["body"] == ("[1]",)
    assert [name for name, _ in built.steps[0].headers] == ["Content-Type"]


def test_what_cannot_be_sent_as_asked_is_refused():
    wanted = {"url": "http://h/", "method": "GET", "status_code": 200, "cookies": {}}
    with pytest.raises(InvalidInput, match=r"check_request: cookies"):
        scenario("HttpRequests.check_request", wanted)
