"""Raises concurrency and number of requests together while all succeed.

The wrapper around Rally of the Red Hat reference architecture (2016): concurrency = times = c,
c grows by 10 while the success rate is as expected, with pauses of 60 s between the runs.
"""

from loadstone.plan.load import ClosedLoad
from loadstone.search.guard import guarded
from loadstone.search.model import Capacity, Strategy
from loadstone.search.session import BudgetSpent, Session
from loadstone.search.settings import SearchSettings

STEP = 10
PAUSE_S = 60.0
EXPECTED_SUCCESS = 1.0


def step_concurrency(settings: SearchSettings) -> Strategy:
    """Search as the wrapper did, within the budget."""
    session = Session(settings)
    return guarded(session, _search(session))


def _search(session: Session) -> Strategy:
    held, held_rps, failed = 0, 0.0, None
    ceiling = ""  # why the limit on the load set the rate; empty if it did not
    concurrency = STEP
    most = session.settings.max_connections
    while failed is None and concurrency <= most and session.left_s > 0:
        try:
            trial = yield from session.run_trial(
                ClosedLoad(concurrency, iterations=concurrency),
                f"{concurrency} at once",
                pause_s=PAUSE_S if held else 0.0,
            )
        except BudgetSpent:  # its answers would take longer than what is left
            break
        stats = trial.stats
        ceiling = trial.ceiling or ceiling
        if stats.ok < EXPECTED_SUCCESS * stats.due:
            failed = f"{concurrency} at once failed: {stats.failed} of {stats.due}"
        else:
            held, held_rps = concurrency, stats.completed_rps
            concurrency += STEP
    if not held and most < STEP:
        failed = (
            f"no trial was made: the method begins with {STEP} at once, and --max-connections "
            f"allows {most}"
        )
    if not held:
        return Capacity(None, None, None, 0.0, (failed or "the budget was too small",))
    why = "no more connections are allowed" if concurrency > most else "the budget ended"
    notes = (
        f"{held} at once succeed; {failed or why}",
        f"a number at once is not a rate: {held_rps:.4g}/s is what {held} at once took",
        *((ceiling,) if ceiling else ()),
    )
    return Capacity(held_rps, None, None, 0.0, notes)
