"""More client processes until responses per second peak, 20 s each (wiki: KeystonePerformance)."""

from loadstone.plan.load import ClosedLoad
from loadstone.search.guard import guarded
from loadstone.search.model import Capacity, Strategy
from loadstone.search.ramp import MOST_WORKERS
from loadstone.search.session import Session
from loadstone.search.settings import Settings

STEP_S = 20.0
FIRST = 2
FACTOR = 2
GROWTH = 1.02  # less is called a peak
WORDS = (
    "a peak of closed-loop throughput: no interval, and blind to what fails below saturation",
    "a generator that cannot keep up looks like a peak",
)


def closed_loop_peak(settings: Settings) -> Strategy:
    """Search as the wiki did."""
    session = Session(settings)
    return guarded(session, _search(session))


def _search(session: Session) -> Strategy:
    best_rps, clients = 0.0, FIRST
    while clients <= min(MOST_WORKERS, session.settings.max_connections):
        trial = yield from session.ask(ClosedLoad(clients, STEP_S), f"{clients} clients")
        rate_rps = trial.summary.throughput_rps
        if rate_rps < GROWTH * best_rps:
            return _peak(max(rate_rps, best_rps), ())
        best_rps = max(rate_rps, best_rps)
        if best_rps > session.settings.ceiling_rps / FACTOR:
            return _peak(best_rps, ("more clients could exceed the ceiling",))
        clients *= FACTOR
    return _peak(best_rps, (f"still rising at {clients // FACTOR} clients",))


def _peak(rate_rps: float, words: tuple[str, ...]) -> Capacity:
    if not rate_rps:
        return Capacity(None, None, None, 0.0, ("nothing ended well",))
    return Capacity(rate_rps, None, None, 0.0, (*words, *WORDS))
