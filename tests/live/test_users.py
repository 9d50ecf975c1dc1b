"""Users made in a real Keystone, loaded as by the engine, and gone afterwards."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kept_names import kept_names
from made_users import users

from loadstone.cloud import connect, from_environment
from loadstone.engine import local
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.clean import clean, remaining
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.contexts import shared
from loadstone.keystone.contexts.credentials import with_credentials
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.keystone.contexts.users import make_users
from loadstone.keystone.contexts.workload import announce
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import ResourceKind
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.keystone.scenarios.model import Need
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.sources.open import open_sources
from loadstone.plan.load import ClosedLoad
from loadstone.plan.script import Step

pytestmark = pytest.mark.live

RUN = "20261121-0931-ab12cd"
NAME = f"loadstone-{RUN}"

# A run that prepares users and then waits to be stopped.
MAKE_USERS = """
import os, select, sys
from pathlib import Path
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.users import RunJournal
from loadstone.keystone.contexts.workload import contexts
from loadstone.cloud import connect, from_environment
wanted = [Users(2, int(sys.argv[2]))]
with connect(from_environment(os.environ, "--lab test")) as access:
    with contexts(access, RunJournal(sys.argv[3], Path(sys.argv[1])), wanted, print):
        print("made", flush=True)
        # A signal just before a call that waits for ever would not end it.
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            pass
"""


@pytest.fixture
def access(exclusive_keystone):
    with connect(
        from_environment(exclusive_keystone.environment_variables(), "--lab test")
    ) as access:
        yield access


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "created.jsonl"


def names(access):
    return kept_names(Identity(access))


def outcomes(plan):
    samples = local.run(plan).samples
    return [(Outcome(o).name, int(s)) for o, s in zip(samples.outcome, samples.status, strict=True)]


def with_count_of_uwsgi(lab, plan):
    """Return the outcomes of a plan's requests, and how many uWSGI served meanwhile."""
    with Monitor(open_sources(lab.members, lab.statistics()), every_s=1000) as monitor:
        since_s = monitor.sample()
        answered = outcomes(plan)
        until_s = time.monotonic() + 10.0
        while True:  # uWSGI counts a request after its response was sent
            monitor.sample()
            counted = monitor.metrics(since_s).increase("uwsgi", "requests_total")
            if counted == len(answered) or time.monotonic() > until_s:
                return answered, counted
            time.sleep(0.05)


def test_every_user_gets_a_token_that_is_valid(access, journal):
    before = names(access)
    with users(access, RUN, Users(2, 3), journal, print) as people:
        assert [
            user.name for user in people if user.name not in names(access)[ResourceKind.USER]
        ] == []
        load = ClosedLoad(workers=2, iterations=len(people))
        issue = compile_plan(SCENARIOS["issue"], access, people, {}, load)
        assert outcomes(issue) == [("OK", 201)] * len(people)
        tokens = issue_tokens(access, people)
        validate = compile_plan(SCENARIOS["validate"], access, people, {"token": tokens}, load)
        assert outcomes(validate) == [("OK", 200)] * len(people)
    assert names(access) == before
    assert remaining(journal) == ()


def test_users_that_are_taken_over_get_passwords_and_tokens_that_are_valid(access, journal):
    settings = Users(2, 3)
    before = make_users(
        Identity(access), settings, (), Journal.start(journal, RUN, access), print
    )  # and the run is killed
    with users(access, RUN, settings, journal, print) as people:
        assert [user.id for user in people] == [user.id for user in before]
        assert not {user.password for user in people} & {user.password for user in before}
        load = ClosedLoad(workers=2, iterations=2 * len(people))
        # A changed password revokes the user's earlier tokens, and none that is issued here.
        tokens = issue_tokens(access, people)
        validate = compile_plan(SCENARIOS["validate"], access, people, {"token": tokens}, load)
        assert outcomes(validate) == [("OK", 200)] * 2 * len(people)
        for user in before:  # with the password that it had
            with pytest.raises(Refused, match="HTTP 401"):
                Identity(access).log_in(user)


def test_odd_passwords_reach_keystone_unharmed(access, journal, monkeypatch):
    odd = ["q\"uo'te", "back\\slash\\n", "ünï ∞ 𝄞 code", "{brace}<user>%s"]
    monkeypatch.setattr("loadstone.keystone.contexts.users.new_password", odd.pop)
    with users(access, RUN, Users(1, 4), journal, print) as people:
        load = ClosedLoad(workers=1, iterations=4)
        plan = compile_plan(SCENARIOS["issue"], access, people, {}, load)
        assert outcomes(plan) == [("OK", 201)] * 4


@contextmanager
def making_users(exclusive_keystone, journal, run_id, per_tenant):
    """Run MAKE_USERS in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE_USERS, str(journal), str(per_tenant), run_id],
        env={**os.environ, **exclusive_keystone.environment_variables()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(journal, words, process):
    """Wait until the journal says so."""
    while not journal.exists() or words not in journal.read_text():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_ctrl_c_while_users_are_made_leaves_nothing(exclusive_keystone, access, journal):
    before = names(access)
    with making_users(exclusive_keystone, journal, "int1", 20) as process:
        wait_for(journal, "loadstone-int1-u5", process)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate()
    assert "KeyboardInterrupt" in shown
    assert names(access) == before
    assert remaining(journal) == ()


def test_ctrl_c_during_the_load_leaves_nothing(exclusive_keystone, access, journal):
    before = names(access)
    with making_users(exclusive_keystone, journal, "int2", 2) as process:
        while process.stdout.readline().strip() != "made":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.wait()
    assert names(access) == before
    assert remaining(journal) == ()


def test_after_a_kill_the_command_removes_all(exclusive_keystone, access, journal):
    before = names(access)
    with making_users(exclusive_keystone, journal, "kill1", 20) as process:
        wait_for(journal, "loadstone-kill1-u5", process)
        process.kill()
        process.wait()
    assert names(access) != before
    assert remaining(journal)
    assert clean(access, journal, print) == ()
    assert names(access) == before
    assert clean(access, journal, print) == ()


def test_a_kill_leaves_no_password_behind(exclusive_keystone, access, journal):
    with making_users(exclusive_keystone, journal, "kill2", 1) as process:
        while process.stdout.readline().strip() != "made":
            assert process.poll() is None
        command_line = Path(f"/proc/{process.pid}/cmdline").read_text()
        process.kill()
        process.wait()
    secret = exclusive_keystone.environment_variables()["OS_PASSWORD"]
    assert secret not in journal.read_text() + command_line
    assert "password" not in journal.read_text()
    assert clean(access, journal, print) == ()


def test_every_scenario_is_answered_as_expected_and_as_often_as_uwsgi_counts(
    exclusive_keystone, access, journal, monkeypatch
):
    for name, few in (("GROUPS", 3), ("TREE_PROJECTS", 13)):
        monkeypatch.setattr(shared, name, few)
    before = names(access)
    with users(access, RUN, Users(1, 2), journal, print) as people:
        load = ClosedLoad(workers=1, iterations=2)
        # With a second factor, users could not log in for the others.
        needs = set(Need) - {Need.SECOND_FACTOR}
        actors = shared.with_shared(Identity(access), people, needs, Journal(journal, RUN), print)
        actors = with_credentials(access, actors, needs)
        for name, scenario in SCENARIOS.items():
            if {Need.SECOND_FACTOR, Need.FEDERATION, Need.CLIENT_CERTIFICATE} & set(scenario.needs):
                continue
            announce(Journal(journal, RUN), scenario.makes)
            columns = scenario.token_columns
            tokens = {column: issue_tokens(access, actors, column=column) for column in columns}
            at_once = tuple(step for step in scenario.steps if isinstance(step, Step))
            wanted = replace(scenario.of_run(RUN), steps=at_once)
            plan = compile_plan(wanted, access, actors, tokens, load)
            answered, counted = with_count_of_uwsgi(exclusive_keystone, plan)
            assert {outcome for outcome, _ in answered} == {"OK"}, scenario.name
            assert counted == len(answered), scenario.name
            if name == "group-life":
                # Leaving a group revokes the user's tokens, those of the rest of the second, too.
                time.sleep(1.0 - time.time() % 1.0)
    assert names(access) == before
    # Keystone keeps the roles of a domain that is gone.
    assert Identity(access).find(ResourceKind.ROLE, domain_id=people[0].domain_id) == ()


def test_users_in_groups_have_their_roles_from_them(access, journal, monkeypatch):
    monkeypatch.setattr(shared, "GROUPS", 3)
    with users(access, RUN, Users(1, 1), journal, print) as people:
        identity, needs = Identity(access), (Need.GROUPS,)
        for _ in range(2):  # a second scenario of a run may need them, too
            [user] = shared.with_shared(identity, people, needs, Journal(journal, RUN), print)
        place = f"/projects/{user.project_id}/users/{user.id}/roles/{identity.role_id('member')}"
        assert identity.call(place, "DELETE").ok  # what the user had by itself
        assert identity.log_in(user)  # Keystone refuses users without a role in the project
        listed = identity.call(
            f"/role_assignments?user.id={user.id}&effective&include_names", "GET"
        ).json()["role_assignments"]
        assert "member" in {one["role"]["name"] for one in listed}


def test_a_tree_has_as_many_projects_as_it_says(access, journal, monkeypatch):
    monkeypatch.setattr(shared, "TREE_PROJECTS", 25)
    with users(access, RUN, Users(1, 1), journal, print) as people:
        identity, needs = Identity(access), (Need.PROJECT_TREE,)
        [user] = shared.with_shared(identity, people, needs, Journal(journal, RUN), print)
        root = user.credentials["tree_root"]
        tree = identity.call(f"/projects/{root}?subtree_as_ids", "GET").json()["project"]["subtree"]
        assert len(tree) == 10  # directly below it
        assert sum(len(below or {}) for below in tree.values()) == 14


def test_a_login_with_a_second_factor_needs_both(balanced_keystone, journal):
    variables = balanced_keystone.environment_variables()
    scenario = SCENARIOS["login-totp"]
    with (
        connect(from_environment(variables, "--lab test")) as access,
        users(access, RUN, Users(1, 2), journal, print) as people,
    ):
        actors = with_credentials(access, people, scenario.needs)
        load = ClosedLoad(workers=2, iterations=6)
        plan = compile_plan(scenario, access, actors, {}, load)
        assert Counter(outcomes(plan)) == {("OK", 401): 6, ("OK", 201): 6}
        issue = compile_plan(SCENARIOS["issue"], access, actors, {}, load)
        assert {status for _, status in outcomes(issue)} == {401}


def test_a_service_without_second_factors_is_named_before_any_load(access, journal):
    with (
        users(access, RUN, Users(1, 1), journal, print) as people,
        pytest.raises(EnvironmentUnusable, match=r"totp is missing in \[auth\] methods"),
    ):
        with_credentials(access, people, (Need.SECOND_FACTOR,))
