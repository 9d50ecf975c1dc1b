"""More client processes until responses per second peak, 20 s each (wiki: KeystonePerformance)."""

from loadstone.plan.load import ClosedLoad
from loadstone.search.guard import guarded
from loadstone.search.model import Capacity, CapacityKind, Strategy
from loadstone.search.ramp import NEAR_CEILING
from loadstone.search.session import LEAST_LOAD_S, Session
from loadstone.search.settings import SearchSettings

STEP_S = 20.0
FIRST = 2
FACTOR = 2
GROWTH = 1.02  # less growth counts as a peak
WORDS = (
    "a peak of closed-loop throughput: no interval, and blind to what fails below saturation",
    "a generator that cannot keep up looks like a peak",
)


def closed_loop_peak(settings: SearchSettings) -> Strategy:
    """Search as the wiki did."""
    session = Session(settings)
    return guarded(session, _search(session))


def _search(session: Session) -> Strategy:
    best_rps, clients = 0.0, FIRST
    ceiling_rps = session.settings.ceiling_rps
    while clients <= session.settings.max_connections and session.left_s > LEAST_LOAD_S:
        session.estimate = (f"{best_rps:.4g}/s completed at most",) if best_rps else ()
        trial = yield from session.run_trial(ClosedLoad(clients, STEP_S), f"{clients} clients")
        rate_rps = trial.stats.throughput_rps
        if trial.ceiling:
            return _at_ceiling(max(rate_rps, best_rps), ceiling_rps)
        # A step that the budget cut short may have ended before the first answers.
        is_whole = trial.stats.load_s >= STEP_S
        if rate_rps < GROWTH * best_rps and is_whole:
            return _peak(max(rate_rps, best_rps), ())
        best_rps = max(rate_rps, best_rps)
        if best_rps > NEAR_CEILING * ceiling_rps:
            return _at_ceiling(best_rps, ceiling_rps)
        if best_rps > ceiling_rps / FACTOR:
            note = f"at least {best_rps:.4g}/s: more clients could exceed the ceiling"
            return Capacity(best_rps, best_rps, None, 0.0, (note, *WORDS), CapacityKind.CEILING)
        clients *= FACTOR
    return _still_rising(session, best_rps, clients)


def _still_rising(session: Session, best_rps: float, clients: int) -> Capacity:
    """Return the result if no step saw a peak; `clients` are those of the next step."""
    note = f"still rising at {clients // FACTOR} clients"
    if session.settings.max_connections < FIRST:
        why = (
            f"no trial was made: the method begins with {FIRST} clients, and --max-connections "
            f"allows {session.settings.max_connections}"
        )
        return Capacity(None, None, None, 0.0, (why,))
    if clients <= session.settings.max_connections:
        most = (f"{best_rps:.4g}/s completed at most",) if best_rps else ()
        return Capacity(None, None, None, 0.0, (note, "the budget ended the search", *most))
    note = f"at least {best_rps:.4g}/s: {note}, and no more connections are allowed"
    return Capacity(best_rps, best_rps, None, 0.0, (note, *WORDS), CapacityKind.CEILING)


def _at_ceiling(completed_rps: float, ceiling_rps: float) -> Capacity:
    """Return what completed while the allowed load was the limit; it may be less than was sent."""
    rate_rps = min(completed_rps, ceiling_rps)
    note = (
        f"at least {rate_rps:.4g}/s, which completed: the limit of {ceiling_rps:.4g}/s on the load "
        "kept the clients from sending more"
    )
    return Capacity(rate_rps, rate_rps, None, 0.0, (note, *WORDS), CapacityKind.CEILING)


def _peak(rate_rps: float, notes: tuple[str, ...]) -> Capacity:
    if not rate_rps:
        return Capacity(None, None, None, 0.0, ("nothing succeeded",))
    return Capacity(rate_rps, None, None, 0.0, (*notes, *WORDS), CapacityKind.SATURATION)
