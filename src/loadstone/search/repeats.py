"""Combines the results of several searches of one service."""

import math
from collections.abc import Sequence

from loadstone.search.model import Capacity

CONFIDENCE = 0.95
LEAST = 2


def combined(searches: Sequence[Capacity]) -> Capacity:
    """Return the geometric mean of their N, with an interval that covers the spread between them.

    Student's t over the logarithms of the N (errors are proportional), one value per search, with
    one degree of freedom less: noise slower than a search only shows between searches (Kalibera &
    Jones, "Rigorous benchmarking in reasonable time", ISMM 2013: the highest level that varies is
    the one to repeat). Never narrower than the combination of the searches' own intervals as
    independent ones: few searches may agree by chance.
    """
    stated = [one.as_repeat for one in searches]
    known = [one for one in stated if None not in (one.rate_rps, one.low_rps, one.high_rps)]
    if len(known) < LEAST:
        pairs = zip(searches, stated, strict=True)
        return _alone(searches, [one for one, as_repeat in pairs if as_repeat in known])
    from loadstone.analysis.interval import of_logs

    found = of_logs([math.log(one.rate_rps or 0.0) for one in known])
    downs = [math.log((one.rate_rps or 0.0) / (one.low_rps or 1e-9)) for one in known]
    ups = [math.log((one.high_rps or 0.0) / (one.rate_rps or 1e-9)) for one in known]
    low = min(found.low or found.mean, found.mean * math.exp(-_left(downs)))
    high = max(found.high or found.mean, found.mean * math.exp(_left(ups)))
    notes = (_spread(known), *_without(stated, known), *_shared_notes(known))
    return Capacity(found.mean, low, high, CONFIDENCE, notes)


def _left(halves: Sequence[float]) -> float:
    """Return the half-width of the mean of independent values with these half-widths."""
    return math.hypot(*halves) / len(halves)


def _spread(known: Sequence[Capacity]) -> str:
    rates = sorted(one.rate_rps or 0.0 for one in known)
    share = rates[-1] / rates[0] - 1
    return f"{len(rates)} searches found {rates[0]:.4g} to {rates[-1]:.4g}/s, {share:.1%} apart"


def _without(searches: Sequence[Capacity], known: Sequence[Capacity]) -> tuple[str, ...]:
    missing = [one for one in searches if one not in known]
    if not missing:
        return ()
    why = "; ".join(dict.fromkeys(one.words[0] for one in missing if one.words))
    return (f"{len(missing)} of {len(searches)} searches found no interval: {why}",)


def _shared_notes(known: Sequence[Capacity]) -> tuple[str, ...]:
    """Return the distinct notes of the searches, each with the numbers of its searches."""
    numbers_by_note: dict[str, list[str]] = {}
    for number, one in enumerate(known, 1):
        for note in one.words:
            numbers_by_note.setdefault(note, []).append(str(number))
    return tuple(f"{note} (of {', '.join(numbers)})" for note, numbers in numbers_by_note.items())


def _alone(searches: Sequence[Capacity], known: Sequence[Capacity]) -> Capacity:
    """Return the result if fewer than two searches have an interval."""
    rated = [one for one in searches if one.rate_rps is not None]
    if not rated and not known:
        return Capacity(None, None, None, 0.0, _without(searches, ()))
    least = known[0] if known else min(rated, key=lambda one: one.rate_rps or 0.0)
    others = [one for one in searches if one is not least]
    notes = tuple(dict.fromkeys(one.words[0] for one in others if one.words))
    count = f"{len(known)} of {len(searches)} searches found an interval, so nothing is combined"
    all_notes = tuple(dict.fromkeys((*least.words, count, *notes)))
    return Capacity(least.rate_rps, least.low_rps, least.high_rps, least.confidence, all_notes)
