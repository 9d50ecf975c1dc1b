"""Rally's scenarios against a real Keystone: each succeeds, and leaves nothing."""

import pytest
from kept_names import kept_names

from loadstone.cloud import connect, from_environment
from loadstone.engine import local
from loadstone.engine.samples import Outcome
from loadstone.keystone.clean import remaining
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.contexts.model import Roles, Users
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.keystone.contexts.users import RunJournal
from loadstone.keystone.contexts.workload import contexts
from loadstone.keystone.identity import Identity
from loadstone.keystone.scenarios.build_context import BuildContext
from loadstone.plan.load import ClosedLoad
from loadstone.rally.scenarios import scenario
from loadstone.rally.task.catalogue.identity import AUTHENTICATE, KEYSTONE

pytestmark = pytest.mark.live

RUN = "20261121-0931-ab12cd"
ARGUMENTS = {
    "KeystoneBasic.create_tenant_with_users": [{"users_per_tenant": 2}],
    "KeystoneBasic.create_user": [{}, {"password": "s3cret-A1!", "enabled": False}],
    "KeystoneBasic.get_entities": [{}, {"service_name": None}],
    "KeystoneBasic.create_and_get_role": [{}, {"domain_name": "Default"}],
    "KeystoneBasic.create_and_update_user": [
        {"update_user_kwargs": {"enabled": False, "email": "a@example.org", "password": "N3w-one!"}}
    ],
}
CASES = [
    pytest.param(entry.name, arguments, id=f"{entry.name}-{number}")
    for entry in (AUTHENTICATE[0], *KEYSTONE)
    for number, arguments in enumerate(ARGUMENTS.get(entry.name, [{}]))
]


@pytest.fixture(scope="module")
def access(module_keystone):
    with connect(from_environment(module_keystone.environment_variables(), "--lab test")) as access:
        yield access


def everything(access):
    return kept_names(Identity(access))


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return tmp_path_factory.mktemp("journal") / "created.jsonl"


@pytest.fixture(scope="module")
def actors(access, journal):
    """Two users with a role besides, for all scenarios of this module."""
    before = everything(access)
    wanted = [Users(tenants=2, choice="round_robin"), Roles(("reader",))]
    with contexts(access, RunJournal(RUN, journal), wanted, print) as actors:
        yield actors
    # Also what the iterations of all scenarios made.
    assert everything(access) == before
    assert remaining(journal) == ()


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_a_scenario_of_rally_succeeds(access, actors, name, arguments):
    chosen = scenario(name, arguments, BuildContext(RUN, Identity(access)))
    actors.announce(chosen)
    columns = chosen.token_columns
    tokens = {name: issue_tokens(access, actors.users, column=name) for name in columns}
    # Two iterations show that names differ; one worker, since SQLite refuses a second writer.
    times = 2 if chosen.makes else 1
    load = ClosedLoad(workers=1, iterations=times)
    samples = local.run(compile_plan(chosen, access, actors.users, tokens, load)).samples
    failures = [
        (chosen.steps[a].action, int(s), Outcome(o).name)
        for a, s, o in zip(samples.action, samples.status, samples.outcome, strict=True)
        if o != Outcome.OK
    ]
    assert failures == []
    assert len(samples) == times * len(chosen.steps)
