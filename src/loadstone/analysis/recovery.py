"""Whether a service is as before a fault: the share of failures and the latency, before and after.

Recovered is a question of equivalence, not recovered one of difference. Where neither is shown, the
requests were too few, or failed too unevenly, to tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, sqrt
from statistics import NormalDist

from loadstone.analysis import student

# Chance that a rise is beyond a bound, to either side: a 90 % interval, as in two one-sided tests
# (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987).
BEYOND = 0.05
FALSE_RISE = 0.005  # chance to state a rise where there is none: 2.5 % in five repeats
MOST_RISE = 0.01  # of the share of failures; a service with a higher rise is not as before
LEAST_RISE = 0.001  # of the same share; a smaller rise does not count, however well it is shown
MOST_RATIO = 1.5  # of the latency to that before, as MOST_RISE
LEAST_RATIO = 1.25  # as of a degraded period
LEAST_COMPARED = 20  # successful iterations; fewer have no latency to compare


class Recovery(StrEnum):
    """Whether the service was as before at the end of the observation."""

    RECOVERED = "recovered"
    NOT_RECOVERED = "not recovered"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Bounds:
    """A rise with its 90 % interval, and what it exceeds with a chance of error of FALSE_RISE."""

    value: float
    least: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Remainder:
    """Iterations before a fault, and those after its last effect."""

    before_due: int
    before_failed: int
    after_due: int
    after_failed: int
    # Variance of the failures of periods as a multiple of that of independent ones; at least 1.
    clustering: float
    log_ratio: float | None  # of the latency after to that before; None: too few succeeded
    log_error: float = 0.0  # its standard error, of means of periods
    degrees: float = inf  # degrees of freedom of that error
    is_open: bool = False  # an effect lasted to the end: never shown to be over


def share_rise(one: Remainder) -> Bounds:
    """Return the share of failures after minus that before.

    Newcombe's hybrid score interval (Statistics in Medicine 17, 1998, method 10). Failures come in
    bursts, so counts are divided by their design effect (Rao and Scott, Biometrics 48, 1992).
    """
    before = _share(one.before_failed, one.before_due)
    after = _share(one.after_failed, one.after_due)
    sizes = one.before_due / one.clustering, one.after_due / one.clustering
    sides = []
    for chance, sign in ((FALSE_RISE, -1), (BEYOND, -1), (BEYOND, 1)):
        z = NormalDist().inv_cdf(1 - chance)
        of_before = _score_limit(before, sizes[0], -sign * z) - before
        of_after = _score_limit(after, sizes[1], sign * z) - after
        sides.append(after - before + sign * sqrt(of_before**2 + of_after**2))
    return Bounds(after - before, *sides)


def latency_ratio(one: Remainder) -> Bounds | None:
    """Return the geometric mean latency after as a multiple of that before; None: not known."""
    if one.log_ratio is None:
        return None
    value, error = one.log_ratio, one.log_error
    beyond = error * student.quantile(1 - BEYOND, one.degrees)
    least = exp(value - error * student.quantile(1 - FALSE_RISE, one.degrees))
    return Bounds(exp(value), least, exp(value - beyond), exp(value + beyond))


def judge(one: Remainder) -> Recovery:
    """Say whether the service is shown to be as before, or shown not to be."""
    rise, ratio = share_rise(one), latency_ratio(one)
    if rise.least > LEAST_RISE or (ratio is not None and ratio.least > LEAST_RATIO):
        return Recovery.NOT_RECOVERED
    is_same = (
        ratio is not None
        and rise.low <= LEAST_RISE  # else a rise is likely, though not shown
        and rise.high < MOST_RISE
        and ratio.low <= LEAST_RATIO
        and ratio.high < MOST_RATIO
    )
    return Recovery.RECOVERED if is_same and not one.is_open else Recovery.NOT_SHOWN


def pooled(repeats: Sequence[Remainder]) -> Remainder:
    """Return the iterations of all repeats as those of one."""
    known = [one for one in repeats if one.log_ratio is not None]
    after_due = sum(one.after_due for one in repeats)
    weights = [one.before_due + one.after_due for one in repeats]
    return Remainder(
        before_due=sum(one.before_due for one in repeats),
        before_failed=sum(one.before_failed for one in repeats),
        after_due=after_due,
        after_failed=sum(one.after_failed for one in repeats),
        clustering=sum(one.clustering * n for one, n in zip(repeats, weights, strict=True))
        / sum(weights),
        log_ratio=sum(one.log_ratio or 0.0 for one in known) / len(known) if known else None,
        log_error=sqrt(sum(one.log_error**2 for one in known)) / max(1, len(known)),
        degrees=sum(one.degrees for one in known),
    )


def judge_all(repeats: Sequence[Remainder]) -> tuple[Recovery, ...]:
    """Judge the repeats of one fault.

    Repeats that alone do not show whether the service recovered are judged by all together.
    """
    alone = [judge(one) for one in repeats]
    unclear = [
        one
        for one, state in zip(repeats, alone, strict=True)
        if state is not Recovery.NOT_RECOVERED and not one.is_open and one.after_due
    ]
    if len(unclear) < 2 or Recovery.NOT_SHOWN not in alone:
        return tuple(alone)
    together = judge(pooled(unclear))
    if together is Recovery.NOT_SHOWN:
        return tuple(alone)
    return tuple(
        together if state is Recovery.NOT_SHOWN and one in unclear else state
        for one, state in zip(repeats, alone, strict=True)
    )


def _share(count: int, of_all: int) -> float:
    return count / of_all if of_all else 0.0


def _score_limit(share: float, size: float, z: float) -> float:
    """Return Wilson's limit of a share of `size` independent outcomes; the lower one for z < 0."""
    if not size:
        return 0.0 if z < 0 else 1.0
    half = z * sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    limit = (share + z * z / (2 * size) + half) / (1 + z * z / size)
    return min(1.0, max(0.0, limit))
