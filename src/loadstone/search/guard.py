"""Handles searches that end without N, and makes results consistent with all trials."""

import math
from dataclasses import replace

from loadstone.analysis.interval import CONFIDENCE
from loadstone.analysis.model import Cause
from loadstone.analysis.sla import judge_criteria
from loadstone.analysis.stats import sums_of
from loadstone.errors import LoadTimeUsed
from loadstone.search import fit
from loadstone.search.model import Capacity, CapacityKind, Strategy
from loadstone.search.outage import TIMEOUT_S
from loadstone.search.session import (
    LONGEST_WAIT_S,
    NOT_MET,
    BudgetSpent,
    ConnectionsWereLimit,
    GeneratorWasLimit,
    OnlyErrors,
    Session,
    WaitWasLimit,
)

CHANGED = "the capacity changed during the search"  # start of notes on a change
OF_LATER = "N is that of the service as it was after the change"
OF_EMPTY = "N is what it sustains when the bucket is empty"
# Starts of notes on N: without N or an interval of it, they say nothing.
ABOUT_N = (OF_LATER, OF_EMPTY, "known to within", "no rate above N", "no rate below N")

# Times as slow as they were just below N, responses would still meet the objectives: then the
# objectives limit the rate at less than half that distance from N.
ROOM = 2.0


def guarded(session: Session, body: Strategy) -> Strategy:
    """Run `body`; if nothing can be measured, return the reason instead of N."""
    try:
        found = yield from body
    except (BudgetSpent, LoadTimeUsed):
        found = _so_far(session)
    except ConnectionsWereLimit as limit:
        found = _at_connections(session, limit)
    except GeneratorWasLimit as limit:
        return _generator_was_limit(session, limit)
    except WaitWasLimit:
        return _wait_was_limit(session)
    except OnlyErrors as errors:
        return _only_errors(session, errors)
    # Whether the interval is narrow enough for a number is known without single trials, which may
    # widen it; so is whether there is one capacity.
    fitting = fit.checked(
        session.trials, found, session.since_s, is_by_queue=session.is_slowed_by_queue
    )
    if session.is_metered and fitting.kind in (CapacityKind.SATURATION, CapacityKind.COLLAPSE):
        fitting = _with_objectives(session, fitting)
        widest = fit.widest(session.settings.budget_s)
        fitting = fit.number(session.trials, fitting, session.since_s, widest)
    elif fitting.kind is CapacityKind.REFUSAL:
        # Its bounds are rates that were tried, and not a full service.
        fitting = fit.number((), fitting, session.since_s, fit.WIDEST_REFUSED)
    agreed = _met(session, fitting)
    if found.causes == fitting.causes and fitting.kind is not CapacityKind.COLLAPSE:
        agreed = _met(session, session.evidence.agreed(fitting))
    is_noted = any(CHANGED in note for note in agreed.words)
    changes = () if is_noted else session.changes
    words = (*agreed.words, *changes, *session.notes)
    if agreed.rate_rps is None and not agreed.is_range:
        words = tuple(one for one in words if not one.startswith(ABOUT_N))
    return replace(agreed, words=words)


def _met(session: Session, found: Capacity) -> Capacity:
    """Withhold N and a range of it if there are latency objectives and no trial met them."""
    is_met = session.evidence.sustained_rps is not None or not session.settings.has_objectives
    if is_met or (found.rate_rps is None and not found.is_range):
        return found
    notes = (NOT_MET, *found.words)
    return Capacity(None, None, found.high_rps, 0.0, notes)


def _with_objectives(session: Session, found: Capacity) -> Capacity:
    """Extend the interval down to the highest rate that met the latency objectives, if narrowly.

    A full service completes N, but its queue may miss the objectives between that rate and N. How
    long a queue is grows with 1 / (N - rate), so there is room if responses were far faster.
    """
    met_rps = session.evidence.sustained_rps
    if found.low_rps is None or met_rps is None or found.low_rps <= met_rps:
        return found
    met = [one for one in session.trials if one.rate_rps == met_rps]
    objectives = session.settings.objectives
    slower = [judge_criteria(objectives, sums_of(one.stats).slowed(ROOM)) for one in met]
    if all(check.success for checks in slower for check in checks):
        return found
    note = f"no rate above {met_rps:.4g}/s was seen to meet the objectives"
    return replace(found, low_rps=met_rps, words=(note, *found.words))


def at_least(ceiling_rps: float) -> Capacity:
    """Return the result that the ceiling was sustained."""
    notes = (f"at least {ceiling_rps:.4g}/s, the ceiling; a higher one would tell more",)
    return Capacity(ceiling_rps, ceiling_rps, None, CONFIDENCE, notes, CapacityKind.CEILING)


def no_more_than(
    high_rps: float, reasons: tuple[str, ...], causes: tuple[Cause, ...] = ()
) -> Capacity:
    """Return the result that no rate was sustained for long enough."""
    notes = (f"no more than {high_rps:.4g}/s: no rate was sustained for long enough", *reasons)
    return Capacity(None, None, high_rps, 0.0, notes, causes=causes)


def _so_far(session: Session) -> Capacity:
    found = session.so_far()
    if found is not None and (found.rate_rps is not None or found.is_range):
        return found
    spent = f"the budget of {session.settings.budget_s:.0f} s ended before N was found"
    held = session.evidence.sustained_rps
    high = session.evidence.failed_rps
    if held is None:
        notes = (*session.estimate, f"{spent}: a longer one would tell")
        return Capacity(None, None, high, 0.0, notes)
    if high is not None and high > held:
        return Capacity(None, held, high, 0.0, (spent, f"{held:.4g}/s held, {high:.4g}/s failed"))
    if held >= session.settings.ceiling_rps:
        return at_least(held)
    return Capacity(held, held, None, 0.0, (f"at least {held:.4g}/s, which was sustained", spent))


def _at_connections(session: Session, limit: ConnectionsWereLimit) -> Capacity:
    held = max(session.evidence.sustained_rps or 0.0, limit.throughput_rps)
    needed = math.ceil(100 * limit.connections / held) if held else limit.connections
    notes = (
        f"at least {held:.4g}/s: all {limit.connections} connections were in use and the service "
        f"had no queue, so a client needs about {needed} connections for each 100/s; "
        f"--max-connections {4 * limit.connections} would tell more",
        *map(str, limit.args),
    )
    return Capacity(held, held, None, CONFIDENCE, notes, CapacityKind.CEILING)


def _generator_was_limit(session: Session, limit: GeneratorWasLimit) -> Capacity:
    held = session.evidence.sustained_rps
    failed = session.evidence.failed_rps
    is_held = held is not None and (failed is None or failed > held)
    at_least = (f"at least {held:.4g}/s, which was sustained",) if is_held else ()
    why = "the load generator was the limit, not the service"
    notes = (why, *limit.args, *at_least, *_changes(session))
    low = held if is_held else None
    return Capacity(None, low, None, 0.0, notes, causes=(Cause.GENERATOR,))


def _wait_was_limit(session: Session) -> Capacity:
    why = (
        f"more requests at once may take longer than {LONGEST_WAIT_S:.0f} s, and the time-out of a "
        f"request is {TIMEOUT_S:.0f} s"
    )
    notes = (*session.estimate, why, *_changes(session))
    return Capacity(None, None, None, 0.0, notes, causes=(Cause.GENERATOR,))


def _only_errors(session: Session, errors: OnlyErrors) -> Capacity:
    held = session.evidence.sustained_rps
    before = (f"it had sustained {held:.4g}/s before",) if held else ()
    notes = (f"the service {_answers(session)}", *errors.args, *before, *_changes(session))
    causes = (Cause.ERRORS, Cause.DRIFT) if _went_away(session) else (Cause.ERRORS,)
    return Capacity(None, None, None, 0.0, notes, causes=causes)


def _changes(session: Session) -> tuple[str, ...]:
    """Return the notes on changes, without what they say of an N that is not stated."""
    return tuple(one for one in session.changes if not one.startswith(ABOUT_N))


def _went_away(session: Session) -> bool:
    return len(session.trials) > 1 and session.has_answered


def _answers(session: Session) -> str:
    """Say how the service answers too few requests for a search."""
    first = session.trials[0].stats if session.trials else None
    if _went_away(session):
        return "stopped answering in mid-search"
    if len(session.trials) > 1:
        return "answers errors only"
    if first is not None and first.ok:
        return f"answered only {first.ok} of the first {first.due} requests without an error"
    if first is not None and not first.failed:
        return f"answered none of the first {first.due} requests in the time given"
    return "answers errors only"
