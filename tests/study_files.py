"""Study files and results for the tests of studies."""

from math import exp

from loadstone.result import Environment, Finding, Result
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
  - {cell: {web: apache, workers: 2}, rate_rps: 42, words: "seen elsewhere"}
quick:
  words: one worker, once
  repeats: 1
  pause_s: 0
  budget_s: 20
  levels: {workers: [1]}
"""


def result_of(run_id: str, rate_rps: float | None, width: float = 0.1) -> Result:
    """A result whose search found this N, with an interval of +- `width` of it."""
    capacity = None
    if rate_rps is not None:
        low, high = rate_rps * exp(-width), rate_rps * exp(width)
        capacity = Capacity(rate_rps, low, high, 0.9)
    finding = Finding("Authenticate.keystone", "token issue", "POST", capacity, (), 1.0, 1.0)
    return Result(
        run_id=run_id,
        kind="study",
        status="finished",
        started_at="2026-11-21T09:31:00+00:00",
        ended_at="2026-11-21T09:32:00+00:00",
        findings=(finding,),
        environment=Environment((), ()),
        command="loadstone study run",
    )
