"""Trials of a search against a service on a local port, by the real engine."""

import itertools
import time

from known_service import ISSUE

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine.gate import LOCAL, Engine
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.search.model import Capacity, Measure, TrialRequest
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES

GENERATOR = "the load generator was the limit, not the service"


def measuring(port: int, engine: Engine = LOCAL) -> Measure:
    """Return what measures one trial of logins at a local port."""
    numbers = itertools.count(1)

    def measure(ask: TrialRequest) -> Trial:
        time.sleep(ask.pause_s)
        limits = Limits(max_connections=ask.max_connections or Limits().max_connections)
        plan = Plan(Origin("http", "127.0.0.1", port), (ISSUE,), ask.load, limits=limits)
        tolerates = ask.tolerates_errors
        watch = alarm(ask.load, ask.alarm_s, Goal(), ask.settle_s, tolerates_errors=tolerates)
        measured = engine.run(plan, watch)
        return assess(ask.spec(next(numbers)), measured.samples, measured.health, Goal())

    return measure


def searched(
    port: int, budget_s: float, method: str = "meter", engine: Engine = LOCAL
) -> tuple[Capacity, tuple[Trial, ...]]:
    """Search N of logins at a local port."""
    return search(STRATEGIES[method](SearchSettings(budget_s=budget_s)), measuring(port, engine))


def is_unhindered(found: Capacity) -> bool:
    """Return whether the machine left the generator enough time."""
    return found.words[:1] != (GENERATOR,)
