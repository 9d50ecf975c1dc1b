"""Detects that a service was unavailable for a part of a trial: restarted, or cut off."""

import numpy as np

from loadstone.analysis.model import TICK_S, Trial
from loadstone.engine.samples import Outcome
from loadstone.plan.model import Limits
from loadstone.search.pool import runs

TIMEOUT_S = Limits().request_timeout_s

REFUSED = "connection refused"  # nobody listens, unlike with an overloaded service
ANSWERED = "500 "  # by the service itself, which therefore runs
DELIBERATE = ("403 ", "429 ")
DROPPED = 0.5  # of the usual responses in a tick; with fewer it was unavailable for a part of it
LEAST_MISSED = 8.0  # missing responses, at the trial's usual rate; fewer may be chance


def outage_s(trial: Trial) -> float:
    """Return the longest period with failures and without a success; 0: there was none.

    An overloaded service, or one that refuses some requests, still answers others meanwhile.
    """
    counts = trial.timeline
    silent = runs(counts.ok == 0)
    gone = (end - begin for begin, end in silent if counts.failed[begin:end].any())
    longest = max(gone, default=0)
    missed = longest * float(counts.ok.sum()) / max(1, len(counts.ok) - longest)
    return longest * TICK_S if missed >= LEAST_MISSED else 0.0


def is_refused(trial: Trial) -> bool:
    """Return whether connections were refused because nobody listened for a part of the trial.

    If other requests are served normally meanwhile, it is a limit on connections.
    """
    counts = trial.timeline
    if all(name != REFUSED for name, _ in trial.stats.errors):
        return False
    usual = float(np.median(counts.ok)) if len(counts.ok) else 0.0
    if (counts.ok[counts.failed > 0] <= DROPPED * usual).any():
        return True
    # A trial that is stopped by the failures has no full tick of them: use the rest after the last.
    rest_ticks = trial.stats.load_s / TICK_S - len(counts.ok)
    rest_ok = trial.stats.ok - int(counts.ok.sum())
    rest_failed = trial.stats.failed - int(counts.failed.sum())
    return rest_failed > 0 and rest_ok <= DROPPED * usual * rest_ticks


def lost_all(trial: Trial) -> bool:
    """Return whether as many requests failed as were in flight: a crash ends them all at once."""
    if all(name.startswith(ANSWERED) for name, _ in trial.stats.errors):
        return False
    counts = trial.timeline
    failed = np.flatnonzero(counts.failed)
    first = int(failed[0]) if len(failed) else len(counts.failed)
    return trial.stats.failed >= (int(counts.in_flight[first - 1]) if first else 1)


def is_deliberate(trial: Trial) -> bool:
    """Return whether all failures are responses that refuse a request, so the service is up."""
    errors = trial.stats.errors
    return bool(errors) and all(name.startswith(DELIBERATE) for name, _ in errors)


def has_overflowed(trial: Trial, most_rps: float) -> bool:
    """Return whether requests only timed out in a queue that was longer than the time-out.

    At no more than `most_rps`, the last ones in it could not be answered in time.
    """
    stats, in_flight = trial.stats, trial.timeline.in_flight
    is_late = all(one.outcome == Outcome.FIRST_BYTE_TIMEOUT for one in stats.failures)
    most = float(in_flight.max()) if len(in_flight) else 0.0
    return stats.failed > 0 and is_late and most > most_rps * TIMEOUT_S
