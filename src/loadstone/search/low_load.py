"""A phase at low load, from which capacity is predicted.

Requests come in bursts of about a second, with as many at a time as the service can process in
parallel, and long pauses in between. A request costs the same within a burst as under full load;
with cores that idle between requests it would take more CPU time. Therefore requests in a burst
come slightly faster than the service completes them; the response time without queueing is measured
before. If requests take long, the phase lasts until enough of them have ended.
"""

from collections.abc import Iterable

from loadstone.analysis.model import Trial
from loadstone.diagnosis.demand import LEAST_REQUESTS
from loadstone.diagnosis.prediction import side_by_side
from loadstone.plan.load import ClosedLoad, ReplayLoad
from loadstone.search.model import Part, Strategy, TrialRequest

ALONE_S = 4.0
LOW_S, MOST_LOW_S = 30.0, 120.0
WANTED = LEAST_REQUESTS + 4  # requests of the phase; some may fail
SHARE = 0.3  # of the throughput of one request after the other
BURST_S = 1.0
PACE = 0.75  # interval between groups of requests, as a share of the lone response time
LEAST_BURSTS = 3
MOST_AT_ONCE = 16
PURPOSE = "low load"  # of the trial that capacity is predicted from
ALONE = "one request after the other"  # of the trial before it
LOAD_S = ALONE_S + MOST_LOW_S


def is_low_load(trial: Trial) -> bool:
    """Return whether a trial was made at low load for a prediction."""
    return trial.purpose in (ALONE, PURPOSE)


def of_low_load(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial that capacity is predicted from, or None if it was not made."""
    return next((trial for trial in trials if trial.purpose == PURPOSE), None)


def of_requests_alone(trials: Iterable[Trial]) -> Trial | None:
    """Return the trial before it, in which no request queued, or None if it was not made."""
    return next((trial for trial in trials if trial.purpose == ALONE), None)


def low_load(ceiling_rps: float) -> Part[None]:
    """Measure the throughput of one request after the other, then load with a share of it."""
    trial = yield TrialRequest(ClosedLoad(1, ALONE_S), ALONE)
    if trial.stats.ok:
        seen = trial.resources.observation if trial.resources else None
        at_once = min(side_by_side(seen), MOST_AT_ONCE) if seen else 1
        yield TrialRequest(_bursts(at_once, trial.stats.service.mean_s, ceiling_rps), PURPOSE)


def after_low_load(ceiling_rps: float, search: Strategy) -> Strategy:
    """Run the phase at low load, then search."""
    yield from low_load(ceiling_rps)
    return (yield from search)


def _bursts(at_once: int, each_s: float, ceiling_rps: float) -> ReplayLoad:
    """Return bursts in which `at_once` requests begin when the previous ones have almost ended.

    The average rate over bursts and pauses is `SHARE` of the throughput of one request after the
    other; within a burst the rate is at most the ceiling.
    """
    round_s = max(PACE * each_s, at_once / ceiling_rps)
    rate_rps = min(SHARE / each_s, ceiling_rps)
    low_s = min(max(LOW_S, WANTED / rate_rps), MOST_LOW_S)
    most_rounds = int(low_s * rate_rps / (LEAST_BURSTS * at_once))
    rounds = max(min(round(BURST_S / round_s), most_rounds), 1)
    every_s = max(rounds * at_once / rate_rps, rounds * round_s)
    count = max(int((low_s - rounds * round_s) / every_s) + 1, 1)
    return ReplayLoad(
        tuple(
            burst * every_s + number * round_s + place / ceiling_rps
            for burst in range(count)
            for number in range(rounds)
            for place in range(at_once)
        )
    )
