"""Measures the curve of throughput and latency, from low load to slight overload."""

import contextlib
from collections.abc import Iterable, Sequence

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.errors import LoadTimeUsed
from loadstone.plan.load import OpenLoad
from loadstone.search.guard import ABOUT_N
from loadstone.search.model import Capacity, Strategy, TrialRequest
from loadstone.search.session import Session

SHARES = (0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.05, 1.1)  # of N
# Of N, with a little for rounding. Noise degrades one in 200 trials of 5 s at 0.9 of N, and none at
# less (seven families of simulated services, 40 each).
CLEAR_SHARE = 0.91
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
    tried: list[Trial] = []
    with contextlib.suppress(LoadTimeUsed):  # late responses took it: N is known all the same
        for share in SHARES:
            if share * n_rps <= session.settings.ceiling_rps:
                load = OpenLoad(share * n_rps, seconds)
                purpose = f"{PURPOSE}: {100 * share:.0f} % of N"
                request = TrialRequest(
                    load,
                    purpose,
                    alarm_s=ALARM_S,
                    settle_s=session.settle_s,
                    max_connections=session.settings.max_connections,
                    found=_checked(found, n_rps, tried),
                )
                tried.append((yield request))
    return _checked(found, n_rps, tried)


def _checked(found: Capacity, n_rps: float, tried: Sequence[Trial]) -> Capacity:
    """Return the capacity; without N if the service no longer sustains much less.

    A trial is noise, or something that is over, if the service sustains as much or more after it.
    """
    held = [number for number, one in enumerate(tried) if one.verdict.state is TrialState.SUSTAINED]
    since = tried[max(held, default=-1) + 1 :]
    failed = next((one for one in since if _is_failed(one, n_rps)), None)
    if failed is None:
        return found
    why = "; ".join(failed.verdict.reasons)
    note = f"N was {n_rps:.4g}/s, and {failed.rate_rps:.4g}/s was not sustained after that: {why}"
    words = (note, *(one for one in found.words if not one.startswith(ABOUT_N)))
    return Capacity(None, None, None, 0.0, words, causes=(Cause.DRIFT, Cause.INCONSISTENT))


def _is_failed(trial: Trial, n_rps: float) -> bool:
    """Return whether a service with this N would have sustained the trial.

    If nothing is answered, any rate below N shows it.
    """
    is_degraded = trial.verdict.cause in (Cause.OVERLOAD, Cause.DRIFT, Cause.ERRORS)
    share = (trial.rate_rps or 0.0) / n_rps
    return is_degraded and share < (CLEAR_SHARE if trial.stats.ok else 1.0)
