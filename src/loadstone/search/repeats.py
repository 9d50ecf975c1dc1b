"""Combines the results of several searches of one service."""

import math
from collections.abc import Sequence
from dataclasses import replace

from loadstone.analysis.model import Cause
from loadstone.search.model import Capacity, CapacityKind

CONFIDENCE = 0.95
LEAST = 2
# The other searches found what the service sustained before it changed or failed.
CONTRARY = {Cause.ERRORS, Cause.DRIFT}
# Of N. A wider interval, such as 0 to 2,719 for 25 and 50, says nothing: Student's t of few
# searches that differ by more than a tenth.
MOST_REACH = 1.0


def combined(searches: Sequence[Capacity], budget_s: float) -> Capacity:
    """Combine searches of `budget_s` seconds each.

    N is the geometric mean of their N, with an interval that covers the spread between them:
    Student's t over the logarithms of the N (errors are proportional), one value per search, with
    one degree of freedom less: noise slower than a search only shows between searches (Kalibera &
    Jones, "Rigorous benchmarking in reasonable time", ISMM 2013: the highest level that varies is
    the one to repeat). Never narrower than the combination of the searches' own intervals as
    independent ones: few searches may agree by chance; and no surer than the least sure search. As
    for a single search, N is only a number if its interval is narrow enough. No N is stated if
    searches show that there is not one capacity.
    """
    stated = [one.as_repeat for one in searches]
    rated = [one for one in stated if one.rate_rps is not None]
    known = [one for one in stated if one.reach_rps is not None]
    if rated and _contradict(searches, rated):
        found_rps = (_spread(known),) if len(known) >= LEAST else ()
        notes = (*_without(stated, rated), *found_rps)
        return Capacity(None, None, None, 0.0, notes, causes=(Cause.INCONSISTENT,))
    if len(known) < LEAST:
        pairs = zip(searches, stated, strict=True)
        return _alone(searches, [one for one, as_repeat in pairs if as_repeat in known])
    from loadstone.analysis.interval import of_logs
    from loadstone.search.fit import WIDEST_REFUSED, widest

    found = of_logs([math.log(one.rate_rps or 0.0) for one in known])
    downs = [math.log((one.rate_rps or 0.0) / (one.low_rps or 1e-9)) for one in known]
    ups = [math.log((one.high_rps or 0.0) / (one.rate_rps or 1e-9)) for one in known]
    own = (
        min(found.low or found.mean, found.mean * math.exp(-_left(downs))),
        max(found.high or found.mean, found.mean * math.exp(_left(ups))),
    )
    low, high = _with_bounds(*own, searches)
    notes = (_spread(known), *_without(stated, known), *_shared_notes(stated, known))
    confidence = min(CONFIDENCE, *(one.confidence for one in known))
    kind = _shared_kind(known)
    reach = max(high / found.mean - 1, 1 - low / found.mean)
    limits: dict[CapacityKind | None, float] = {
        CapacityKind.SATURATION: widest(budget_s),
        CapacityKind.COLLAPSE: widest(budget_s),
        CapacityKind.REFUSAL: WIDEST_REFUSED,
        None: widest(budget_s),
    }
    if confidence >= CONFIDENCE and reach > MOST_REACH:
        spread, *more = notes
        is_apart = max(own[1] / found.mean - 1, 1 - own[0] / found.mean) > MOST_REACH
        why = "which is" if is_apart else "and the bound of another search is"
        apart = f"{spread}, {why} too far for an interval: more searches tell"
        return Capacity(None, None, None, 0.0, (apart, *more))
    # Published methods state their numbers however wide they are.
    if confidence < CONFIDENCE or reach <= limits.get(kind, math.inf):
        return Capacity(found.mean, low, high, confidence, notes, kind)
    wide = (
        f"known to within {100 * reach:.0f} % only, which is too wide for a number: more searches "
        "tell"
    )
    return Capacity(None, low, high, confidence, (wide, *notes))


def _with_bounds(low: float, high: float, searches: Sequence[Capacity]) -> tuple[float, float]:
    """Return an interval that holds what searches found that know one bound only."""
    lows = (one.low_rps for one in searches if one.low_rps is not None and one.high_rps is None)
    highs = (one.high_rps for one in searches if one.high_rps is not None and one.low_rps is None)
    return min((low, *highs)), max((high, *lows))


def _contradict(searches: Sequence[Capacity], rated: Sequence[Capacity]) -> bool:
    """Return whether a search saw the service change or fail, or too many fit no capacity.

    One search whose trials do not fit one capacity may be a false alarm: in ordinary families
    (fsync, docs/methodology.md) up to a tenth of the searches are.
    """
    misfits = sum(Cause.INCONSISTENT in one.causes for one in searches)
    return misfits >= len(rated) or any(CONTRARY & set(one.causes) for one in searches)


def _left(halves: Sequence[float]) -> float:
    """Return the half-width of the mean of independent values with these half-widths."""
    return math.hypot(*halves) / len(halves)


def _spread(known: Sequence[Capacity]) -> str:
    rates = sorted(one.rate_rps or 0.0 for one in known)
    share = rates[-1] / rates[0] - 1
    found = f"{len(rates)} searches found {rates[0]:.4g} to {rates[-1]:.4g}/s"
    return f"{found}, {100 * share:.1f} % apart"


def _without(searches: Sequence[Capacity], known: Sequence[Capacity]) -> tuple[str, ...]:
    missing = [one for one in searches if one not in known]
    if not missing:
        return ()
    why = "; ".join(dict.fromkeys(one.words[0] for one in missing if one.words))
    return (f"{len(missing)} of {len(searches)} searches found no interval: {why}",)


def _shared_notes(searches: Sequence[Capacity], known: Sequence[Capacity]) -> tuple[str, ...]:
    """Return the distinct notes of known searches, each with the numbers of its searches."""
    numbers_by_note: dict[str, list[str]] = {}
    for number, one in enumerate(searches, 1):
        for note in one.words if one in known else ():
            numbers_by_note.setdefault(note, []).append(str(number))
    return tuple(f"{note} (of {', '.join(numbers)})" for note, numbers in numbers_by_note.items())


def _shared_kind(searches: Sequence[Capacity]) -> CapacityKind | None:
    """Return what limits the rate in each of the searches; None if it is not the same."""
    kinds = {one.kind for one in searches}
    return kinds.pop() if len(kinds) == 1 else None


def _shared_causes(searches: Sequence[Capacity]) -> tuple[Cause, ...]:
    """Return the causes that each of the searches has, and a change that one of them saw."""
    every = [set(one.causes) for one in searches]
    return tuple(
        cause
        for cause in Cause
        if any(cause in one for one in every)
        and (cause is Cause.DRIFT or all(cause in one for one in every))
    )


def _alone(searches: Sequence[Capacity], known: Sequence[Capacity]) -> Capacity:
    """Return the result if fewer than two searches have an interval."""
    rated = [one for one in searches if one.rate_rps is not None]
    if not rated and not known:
        notes = _without(searches, ())
        return Capacity(None, None, None, 0.0, notes, causes=_shared_causes(searches))
    least = known[0] if known else min(rated, key=lambda one: one.rate_rps or 0.0)
    others = [one for one in searches if one is not least]
    notes = tuple(dict.fromkeys(one.words[0] for one in others if one.words))
    count = f"{len(known)} of {len(searches)} searches found an interval, so nothing is combined"
    all_notes = tuple(dict.fromkeys((*least.words, count, *notes)))
    if least.low_rps is not None and least.high_rps is not None:
        low, high = _with_bounds(least.low_rps, least.high_rps, others)
        least = replace(least, low_rps=low, high_rps=high)
    kind = _shared_kind([one for one in searches if one.rate_rps is not None] or [least])
    return replace(least, words=all_notes, kind=kind, causes=_shared_causes(searches))
