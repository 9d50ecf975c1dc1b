"""Measures the curve of throughput and latency, from low load to slight overload."""

import contextlib
from collections.abc import Iterable

from loadstone.analysis.model import Trial
from loadstone.errors import LoadTimeUsed
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Strategy, TrialRequest
from loadstone.search.session import Session

SHARES = (0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.05, 1.1)  # of N
ALARM_S = 2.0
PURPOSE = "curve"  # start of the purpose of the curve's trials


def of_curve(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials of the curve, all of one length, by rate."""
    found = [trial for trial in trials if trial.purpose.startswith(f"{PURPOSE}:")]
    return sorted(found, key=lambda trial: trial.rate_rps or 0.0)


def with_curve(session: Session, body: Strategy) -> Strategy:
    """Run `body`, then measure the curve up to slightly beyond N."""
    found = yield from body
    n_rps, seconds = found.rate_rps, session.settings.curve_s
    if n_rps is None or seconds <= 0:
        return found
    with contextlib.suppress(LoadTimeUsed):  # late responses took it: N is known all the same
        for share in SHARES:
            if share * n_rps <= session.settings.ceiling_rps:
                load = OpenLoad(share * n_rps, seconds)
                yield TrialRequest(load, f"{PURPOSE}: {share:.0%} of N", alarm_s=ALARM_S)
    return found
