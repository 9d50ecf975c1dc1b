"""How a search ends that cannot end with a number."""

from dataclasses import replace

from loadstone.search.model import Capacity, Strategy
from loadstone.search.session import GeneratorWasLimit, OnlyErrors, Session


def guarded(session: Session, body: Strategy) -> Strategy:
    """Play `body`; where nothing can be measured, say so instead of giving a number."""
    try:
        found = yield from body
        return replace(found, words=(*found.words, *session.notes))
    except GeneratorWasLimit as limit:
        held = session.sustained_rps
        at_least = (f"at least {held:.4g}/s, which was sustained",) if held else ()
        words = ("the load generator was the limit, not the service", *limit.args, *at_least)
        return Capacity(None, held, None, 0.0, words)
    except OnlyErrors as errors:
        held = session.sustained_rps
        before = (f"it had sustained {held:.4g}/s before",) if held else ()
        what = "stopped answering in mid-search" if session.has_answered else "answers errors only"
        words = (f"the service {what}", *errors.args, *before)
        return Capacity(None, None, None, 0.0, words)


def at_least(ceiling_rps: float) -> Capacity:
    """State that the ceiling was sustained, and no more."""
    words = (f"at least {ceiling_rps:.4g}/s, the ceiling; a higher one would tell more",)
    return Capacity(ceiling_rps, ceiling_rps, None, 0.95, words)


def no_more_than(high_rps: float, reasons: tuple[str, ...]) -> Capacity:
    """State that no rate was sustained."""
    words = (f"no more than {high_rps:.4g}/s: no rate was sustained in the time given", *reasons)
    return Capacity(None, None, high_rps, 0.0, words)
