"""Study files and results for the tests of studies."""

from dataclasses import replace
from math import exp

import numpy as np
from made_stats import stats_of

from loadstone.analysis.model import (
    TICK_S,
    Ticks,
    Trial,
    TrialState,
    Verdict,
)
from loadstone.engine.health import Health
from loadstone.result.model import Environment, Measurement, Run
from loadstone.search.model import Capacity

TWO_BY_TWO = """\
title: Two by two
factors:
  web:
    apache: {web: apache}
    nginx: {web: nginx-uwsgi}
  workers: [1, 2]
repeats: 3
pause_s: 7
measurement: {budget_s: 60}
compare:
  - {factor: web, levels: [apache, nginx]}
published:
  - {cell: {web: apache, workers: 2}, value: 42, words: "seen elsewhere"}
quick:
  words: one worker, once
  repeats: 1
  pause_s: 0
  budget_s: 20
  levels: {workers: [1]}
pairs_in_turns: 0
"""

STEPS = """\
title: Steps
factors: {workers: [1, 2]}
measurement:
  kind: steps
  figure: rate
  steps:
    - {scenario: issue, iterations: 10, timed: false}
    - {name: create serially, scenario: issue, iterations: 200}
    - {scenario: validate, concurrency: 20, iterations: 500}
published:
  - {cell: {workers: 2}, step: validate at 20, value: 42, words: "seen elsewhere"}
compare:
  - {factor: workers, levels: [1, 2]}
quick:
  words: short
  iterations: 50
"""


def stretch_of(ok: int, seconds: float, failed: int = 0) -> Measurement:
    """A finding of one stretch: `ok` iterations succeeded, evenly over `seconds`."""
    count = int(seconds / TICK_S)
    per_tick = np.full(count, ok // max(count, 1))
    nothing = np.zeros(count, dtype=np.int64)
    errors = (("503 Service Unavailable", failed),) if failed else ()
    state = TrialState.DEGRADED if failed else TrialState.UNDECIDED
    trial = Trial(
        number=1,
        rate_rps=None,
        purpose="",
        planned_s=seconds,
        stats=stats_of(seconds, ok, seconds / ok, errors),
        timeline=Ticks(due=per_tick, ok=per_tick, failed=nothing, in_flight=nothing),
        health=Health(0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1),
        verdict=Verdict(state, (f"{failed} failed",) if failed else ()),
    )
    return Measurement("x", "x", "GET", "fixed", "finished", trials=(trial,), wall_s=seconds)


def result_of(run_id: str, rate_rps: float | None, width: float = 0.1) -> Run:
    """A result whose search found this N, with an interval of +- `width` of it."""
    capacity = None
    if rate_rps is not None:
        low, high = rate_rps * exp(-width), rate_rps * exp(width)
        capacity = Capacity(rate_rps, low, high, 0.9)
    found = Measurement(
        "Authenticate.keystone", "token issue", "POST", status="finished", capacity=capacity
    )
    return result_with(run_id, (found,))


def limited(result: Run) -> Run:
    """The same, its number lost: the load generator was the limit."""
    (trial,) = stretch_of(10, 5.0).trials
    trial = replace(trial, health=replace(trial.health, limits=("no core free",)))
    return replace(
        result,
        measurements=tuple(replace(f, capacity=None, trials=(trial,)) for f in result.measurements),
    )


def result_with(run_id: str, measurements: tuple[Measurement, ...]) -> Run:
    """A result of a study's turn."""
    return Run(
        run_id=run_id,
        kind="study",
        status="finished",
        started_at="2026-11-21T09:31:00+00:00",
        ended_at="2026-11-21T09:32:00+00:00",
        measurements=measurements,
        environment=Environment((), ()),
        command="loadstone study run",
    )
