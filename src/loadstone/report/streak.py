"""Streaks of trials that failed alike, which a report shows in one line."""

from collections.abc import Iterable, Iterator

from loadstone.analysis.model import Cause, Trial
from loadstone.report import figures

LEAST = 3  # trials in a streak; fewer are shown one by one
NEAR = 0.01  # relative difference of rates that count as equal


def folded(trials: Iterable[Trial]) -> Iterator[tuple[Trial, ...]]:
    """Yield the trials in order, as streaks of one or more that failed alike."""
    alike: list[Trial] = []
    for trial in trials:
        if alike and not _is_alike(alike[-1], trial):
            yield from _as_streak(alike)
            alike = []
        alike.append(trial)
    yield from _as_streak(alike)


def _as_streak(alike: list[Trial]) -> Iterator[tuple[Trial, ...]]:
    if len(alike) >= LEAST:
        yield tuple(alike)
    else:
        yield from ((trial,) for trial in alike)


def _is_alike(one: Trial, other: Trial) -> bool:
    if {one.verdict.cause, other.verdict.cause} != {Cause.ERRORS} or _kinds(one) != _kinds(other):
        return False
    if one.rate_rps is None or other.rate_rps is None:
        return one.rate_rps is other.rate_rps and one.purpose.split()[0] == other.purpose.split()[0]
    return abs(one.rate_rps - other.rate_rps) <= NEAR * one.rate_rps


def _kinds(trial: Trial) -> set[str]:
    return {name for name, _ in trial.stats.errors}


def numbers(streak: tuple[Trial, ...]) -> str:
    """Return "7", or "7-18" for several trials."""
    first, last = streak[0].number, streak[-1].number
    return str(first) if first == last else f"{first}-{last}"


def failed(streak: tuple[Trial, ...]) -> int:
    """Return how many requests failed in all of the trials."""
    return sum(trial.stats.failed for trial in streak)


def throughput_rps(streak: tuple[Trial, ...]) -> float:
    """Return the mean over the trials."""
    return sum(trial.stats.throughput_rps for trial in streak) / len(streak)


def sentence(streak: tuple[Trial, ...]) -> str:
    """Return "12 trials at saturation, 0.8 s each: all failed with 429 Too Many Requests"."""
    rate_rps = streak[0].rate_rps
    load = "saturation" if rate_rps is None else f"{figures.rate(rate_rps)}/s"
    shortest = f"{min(trial.stats.load_s for trial in streak):.1f}"
    longest = f"{max(trial.stats.load_s for trial in streak):.1f}"
    each = shortest if shortest == longest else f"{shortest} to {longest}"
    kinds = ", ".join(name for name, _ in streak[0].stats.errors)
    return f"{len(streak)} trials at {load}, {each} s each: all failed with {kinds}"
