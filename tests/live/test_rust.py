"""Keystone in Rust on what Keystone in Python has made. Skipped where it is not built."""

from collections import Counter
from dataclasses import replace

import pytest
import requests
from lab_client import quietly, token_of, validation_of
from made_users import users

from loadstone.engine import local
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.workload import Actors
from loadstone.keystone.journal import Journal
from loadstone.keystone.prepared import prepare
from loadstone.keystone.rust import UNSERVED
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.monitor.roles import Role, role_of
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement
from loadstone.plan.script import Step
from loadstone.target.choice import NamedTarget
from loadstone.target.connect import connected
from loadstone.workload.requests import Requests

pytestmark = pytest.mark.live
NAME, RUN, ITERATIONS = "in-rust", "20261127-2235-fe0123", 6
CHOSEN = (("implementation", "rust"), ("database", "mariadb"), ("hash-rounds", "4"))
# Needs of a lab that Keystone in Rust cannot be, or a thousand projects.
ELSEWHERE = ("federated-login", "validate-federated", "project-subtree")
SERVED = [name for name in SCENARIOS if name not in (*UNSERVED, *ELSEWHERE)]


@pytest.fixture(scope="module")
def lab(lab_home):  # noqa: ARG001 (it chooses the folder)
    try:
        started = deployment.up(NAME, settings.read(CHOSEN), quietly)
    except EnvironmentUnusable as missing:
        if "make keystone-rust" not in str(missing):
            raise
        # Also in CI: it takes half an hour to build.
        pytest.skip(f"Keystone in Rust: {missing}")
    yield started
    deployment.down(NAME, purge=True)


@pytest.fixture
def target(lab):
    with connected(NamedTarget(lab=lab.name), quietly) as target:
        yield target


@pytest.mark.parametrize("name", SERVED)
def test_what_is_served_is_answered_as_by_python(target, name, tmp_path):
    journal, scenario = tmp_path / "created.jsonl", SCENARIOS[name]
    requests_only = tuple(step for step in scenario.steps if isinstance(step, Step))
    scenario = replace(scenario, steps=requests_only)
    with users(target.access, RUN, Users(1, 3), journal, quietly) as people:
        actors = Actors(people, Journal(journal, RUN), "round_robin")
        prepared = prepare(scenario.of_run(RUN), actors, target.access, quietly)
        load = ClosedLoad(2, iterations=ITERATIONS)
        samples = local.run(prepared.plan(target.access, load, Limits(), Placement())).samples
    assert Counter(samples.outcome.tolist()) == {0: ITERATIONS * len(scenario.steps)}


def test_what_is_not_served_is_refused_before_any_load(target):
    for name in UNSERVED:
        with pytest.raises(InvalidInput, match=f"Keystone in Rust does not serve {name};"):
            Requests(SCENARIOS[name], {}, Limits(), Placement()).require_usable(target)


def test_a_token_is_valid_where_it_was_issued(lab):
    token = token_of(lab.environment_variables())
    assert validation_of(lab.url, token).status_code == 200
    assert requests.get(f"{lab.url}/auth/tokens", timeout=30).status_code == 401


def test_its_processes_are_keystone(lab):
    parts = {member.part for member in lab.members()}
    of_keystone = {part for part in parts if role_of(part) is Role.KEYSTONE}
    assert of_keystone == {"rust-keystone", "opa"}


def test_it_says_what_is_served_and_has_no_workers(lab):
    facts = dict(lab.facts())
    assert facts["release"].startswith("Keystone in Rust, on a database of keystone ")
    assert facts["implementation"].startswith("Keystone in Rust ")
    assert not {"workers", "threads"} & facts.keys()


def test_it_starts_again_without_the_events_of_before(lab):
    deployment.down(lab.name)
    again = deployment.up(lab.name, settings.read(CHOSEN), quietly)
    assert validation_of(again.url, token_of(again.environment_variables())).status_code == 200
