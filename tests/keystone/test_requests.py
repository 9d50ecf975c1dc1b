"""The plans that the engine gets for scenarios."""

import pytest

from loadstone.engine.gate import Allowance
from loadstone.keystone.contexts.users import RunJournal
from loadstone.keystone.contexts.workload import contexts
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.search.model import TrialRequest
from loadstone.system.clock import SYSTEM
from loadstone.target.target import Target
from loadstone.workload.capacity import by_name
from loadstone.workload.generator import LoadTerms
from loadstone.workload.searchable import RequestOptions

CHECK = ("url=http://127.0.0.1:1/", "method=GET", "status_code=200")
RUN = "20261121-0931-ab12cd"


class _Sent(Exception):
    """Raised in place of sending a plan."""

    def __init__(self, plan):
        self.plan = plan


class _Engine:
    clock = SYSTEM

    def run(self, plan, _on_progress=None):
        raise _Sent(plan)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("issue", ()),
        ("KeystoneBasic.add_and_remove_user_role", ()),  # with ids that are looked up
        ("HttpRequests.check_request", CHECK),
    ],
)
@pytest.mark.parametrize("opens_connections", [False, True])
def test_iterations_open_connections_if_the_measurement_says_so(
    access, journal, said, name, arguments, opens_connections
):
    wanted = by_name(name, 1, arguments)
    options = RequestOptions(opens_connections=opens_connections)
    requests = wanted.generator(Limits(), Placement(), options)
    terms = LoadTerms(Allowance(5.0, 10.0), None, lambda: None, lambda _: True, engine=_Engine())
    with (
        contexts(access, RunJournal(RUN, journal), wanted.contexts, said.append) as actors,
        requests.prepared(Target(access), RUN, actors, said.append) as load,
        pytest.raises(_Sent) as sent,
    ):
        load(TrialRequest(OpenLoad(5.0, 1.0), "load"), terms)
    assert sent.value.plan.connection == ("iteration" if opens_connections else "kept")


def test_each_trial_has_random_choices_and_arrivals_of_its_own(access, journal, said):
    wanted = by_name("issue", 1, ())
    requests = wanted.generator(Limits(), Placement(), RequestOptions())
    engine, allowance = _Engine(), Allowance(5.0, 10.0)
    with (
        contexts(access, RunJournal(RUN, journal), wanted.contexts, said.append) as actors,
        requests.prepared(Target(access), RUN, actors, said.append) as load,
    ):
        for seed in (1, 2):
            terms = LoadTerms(
                allowance, None, lambda: None, lambda _: True, engine=engine, seed=seed
            )
            with pytest.raises(_Sent) as sent:
                load(TrialRequest(OpenLoad(5.0, 1.0, "poisson"), "load"), terms)
            assert (sent.value.plan.seed, sent.value.plan.load.seed) == (seed, seed)
