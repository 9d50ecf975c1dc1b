"""What several searches of one service say together."""

import math
from collections.abc import Sequence

from loadstone.search.model import Capacity

CONFIDENCE = 0.95
LEAST = 2


def combined(searches: Sequence[Capacity]) -> Capacity:
    """Return the geometric mean of their N, with an interval that covers the spread between them.

    Student's t over the logarithms of the N (rates scatter in proportion), one value a search, with
    one degree of freedom less: noise slower than a search is seen between searches only (Kalibera &
    Jones, "Rigorous benchmarking in reasonable time", ISMM 2013: the highest level that varies is
    the one to repeat). Never narrower than what the searches' own intervals, taken as independent,
    leave: few searches may agree by luck.
    """
    known = [one for one in searches if None not in (one.rate_rps, one.low_rps, one.high_rps)]
    if len(known) < LEAST:
        return _alone(searches, known)
    from loadstone.analysis.interval import of_logs

    found = of_logs([math.log(one.rate_rps or 0.0) for one in known])
    downs = [math.log((one.rate_rps or 0.0) / (one.low_rps or 1e-9)) for one in known]
    ups = [math.log((one.high_rps or 0.0) / (one.rate_rps or 1e-9)) for one in known]
    low = min(found.low or found.mean, found.mean * math.exp(-_left(downs)))
    high = max(found.high or found.mean, found.mean * math.exp(_left(ups)))
    words = (_spread(known), *_without(searches, known), *_words(known))
    return Capacity(found.mean, low, high, CONFIDENCE, words)


def _left(halves: Sequence[float]) -> float:
    """Return the half-width of a mean of independent values with these half-widths."""
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


def _words(known: Sequence[Capacity]) -> tuple[str, ...]:
    """Return the messages of single searches, each with the searches that gave it."""
    said: dict[str, list[str]] = {}
    for number, one in enumerate(known, 1):
        for words in one.words:
            said.setdefault(words, []).append(str(number))
    return tuple(f"{words} (of {', '.join(which)})" for words, which in said.items())


def _alone(searches: Sequence[Capacity], known: Sequence[Capacity]) -> Capacity:
    """Return the result where no two searches have an interval."""
    rated = [one for one in searches if one.rate_rps is not None]
    if not rated:
        return Capacity(None, None, None, 0.0, _without(searches, ()))
    least = known[0] if known else min(rated, key=lambda one: one.rate_rps or 0.0)
    others = [one for one in searches if one is not least]
    words = tuple(dict.fromkeys(one.words[0] for one in others if one.words))
    count = f"{len(known)} of {len(searches)} searches found an interval, so nothing is combined"
    said = tuple(dict.fromkeys((*least.words, count, *words)))
    return Capacity(least.rate_rps, least.low_rps, least.high_rps, least.confidence, said)
