"""The same search on real sockets and clocks, against a service of exactly known capacity."""

import itertools

import pytest
from known_service import ISSUE, known_service

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine import local
from loadstone.plan.model import Origin, Plan
from loadstone.search.meter import meter
from loadstone.search.model import Ask, Measure
from loadstone.search.run import search
from loadstone.search.settings import Settings


def measuring(port: int) -> Measure:
    numbers = itertools.count(1)

    def measure(ask: Ask) -> Trial:
        plan = Plan(Origin("http", "127.0.0.1", port), (ISSUE,), ask.load)
        measured = local.run(plan, alarm(ask.load, ask.alarm_s, Goal()))
        return assess(ask.offer(next(numbers)), measured.samples, measured.health, Goal())

    return measure


def test_the_capacity_of_a_real_service_is_found() -> None:
    with known_service(2, 0.01) as known:
        found, trials = search(meter(Settings(budget_s=40.0)), measuring(known.port))
    if found.rate_rps is None:  # the machine was too busy for the generator, which must be said
        assert found.words[0] == "the load generator was the limit, not the service"
        pytest.skip("; ".join(found.words))
    assert found.rate_rps == pytest.approx(known.capacity_rps, rel=0.05)
    assert found.low_rps is not None
    assert found.low_rps <= known.capacity_rps * 1.01
    assert sum(trial.summary.load_s for trial in trials) < 50


def test_a_real_service_that_answers_errors_only_gives_words_and_no_number() -> None:
    with known_service(2, 0.01, "--only-errors") as known:
        found, trials = search(meter(Settings(budget_s=40.0)), measuring(known.port))
    assert found.rate_rps is None
    assert found.words[0] == "the service answers errors only"
    assert len(trials) == 1
