"""Where a difference lies: the functions in which the workers of two services spend their time.

Both services are profiled while they take turns, so that other work slows both alike. A function's
time per request is that of its samples: from its call to its return, waiting included.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from loadstone.analysis.model import Trial
from loadstone.diagnosis.cpu_profile import Frame

PROFILED = "profile, in turns, one at a time"  # purpose of the trial
PROFILE_S = 24.0
COUNTED = "SQL statements, in turns, one at a time"  # purpose of the trial
COUNTED_S = 6.0
MOST = 8  # functions in the table
WHOLE = "all workers"  # the root of a profile
SURE = 3.0  # standard errors of a count of samples: fewer are chance
CARRIES = 0.5  # share of the whole difference that a function has, to be named for it
LEAST_STATEMENTS = 0.1  # per request: fewer are of a cache that expires, or of another request
_OURS = re.compile(r"\(keystone/")  # functions that readers can change


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """Time of a function per request of both services, in milliseconds."""

    name: str
    a_ms: float
    b_ms: float
    error_ms: float  # standard error of the difference

    @property
    def difference_ms(self) -> float:
        """How much longer it takes in B."""
        return self.b_ms - self.a_ms

    @property
    def is_sure(self) -> bool:
        """Whether the difference is more than chance."""
        return abs(self.difference_ms) > SURE * self.error_ms


@dataclass(frozen=True, slots=True)
class FrameTime:
    """Time per request of a function in one call stack, in both services."""

    time: FunctionTime
    children: tuple["FrameTime", ...] = ()


@dataclass(frozen=True, slots=True)
class StatementRates:
    """Numbers of SQL statements of one shape per request, in both services."""

    text: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """The number in B less that in A."""
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class Where:
    """The times of a request's functions in both services."""

    whole: FunctionTime
    functions: tuple[FunctionTime, ...]  # those that differ, the most different first
    root: FrameTime  # of the differential flame graph
    statements: tuple[StatementRates, ...] = ()  # the most different first; empty: not counted

    @property
    def carrier(self) -> FunctionTime | None:
        """The smallest function that has most of the difference; None if none has."""
        least_ms = CARRIES * self.whole.difference_ms
        sign = 1 if least_ms > 0 else -1
        carriers = [one for one in self.functions if sign * one.difference_ms >= sign * least_ms]
        if not self.whole.is_sure or not carriers:
            return None
        return min(carriers, key=lambda one: max(one.a_ms, one.b_ms))


def where(profiled: Sequence[Trial], counted: Sequence[Trial] = ()) -> Where | None:
    """Return where the time goes in two profiled trials; None if either has no profile.

    `counted` are two trials whose SQL statements were counted.
    """
    if len(profiled) != 2:
        return None
    a, b = profiled
    if a.profile is None or b.profile is None or not (a.stats.ok and b.stats.ok):
        return None
    profiles = (a.profile, b.profile)
    sides = [_samples(profile.flame) for profile in profiles]
    per_sample = [
        1e3 / profile.rate_hz / trial.stats.ok
        for profile, trial in zip(profiles, (a, b), strict=True)
    ]
    names = {*sides[0], *sides[1]}
    times = [_time(name, [side[name] for side in sides], per_sample) for name in names]
    [whole] = [one for one in times if one.name == WHOLE]
    differ = [one for one in times if one.is_sure and _OURS.search(one.name)]
    differ.sort(key=lambda one: -abs(one.difference_ms))
    root = _both(profiles[0].flame, profiles[1].flame, per_sample)
    return Where(whole, tuple(differ), root, _statements(counted))


def _statements(counted: Sequence[Trial]) -> tuple[StatementRates, ...]:
    if len(counted) != 2 or any(trial.statements is None for trial in counted):
        return ()
    a, b = (
        {one.text: one.count / max(trial.stats.ok, 1) for one in trial.statements or ()}
        for trial in counted
    )
    both = (StatementRates(text, a.get(text, 0.0), b.get(text, 0.0)) for text in {**a, **b})
    return tuple(sorted(both, key=lambda one: (-abs(one.difference), one.text)))


def _both(a: Frame | None, b: Frame | None, per_sample: Sequence[float]) -> FrameTime:
    """Merge the call trees of both services below one function."""
    sides = [side.children if side is not None else () for side in (a, b)]
    names = dict.fromkeys(child.name for children in sides for child in children)
    found = [{child.name: child for child in children} for children in sides]
    [name] = {one.name for one in (a, b) if one is not None}
    counts = [0 if one is None else one.samples for one in (a, b)]
    return FrameTime(
        _time(name, counts, per_sample),
        tuple(_both(found[0].get(one), found[1].get(one), per_sample) for one in names),
    )


def _time(name: str, counts: Sequence[int], per_sample: Sequence[float]) -> FunctionTime:
    a_ms, b_ms = (count * each for count, each in zip(counts, per_sample, strict=True))
    variance = sum(max(count, 1) * each**2 for count, each in zip(counts, per_sample, strict=True))
    return FunctionTime(name, a_ms, b_ms, sqrt(variance))


def _samples(root: Frame) -> Counter[str]:
    """Count the samples of each function, once where it calls itself."""
    found: Counter[str] = Counter()
    for name, samples in _walk(root, frozenset()):
        found[name] += samples
    return found


def _walk(frame: Frame, above: frozenset[str]) -> Iterator[tuple[str, int]]:
    if frame.name not in above:
        yield frame.name, frame.samples
    for child in frame.children:
        yield from _walk(child, above | {frame.name})


def statement_sentence(found: Where) -> str:
    """Say how many SQL statements both send, and which shape differs most."""
    a, b = (sum(side) for side in zip(*((one.a, one.b) for one in found.statements), strict=True))
    counts = (
        "Without those of the driver (COMMIT, ROLLBACK, SET), a request sends "
        f"{a:.1f} SQL statements in A and {b:.1f} in B"
    )
    first = found.statements[0]
    if abs(first.difference) < LEAST_STATEMENTS:
        return f"{counts}, of the same shapes."
    return f"{counts}: {first.difference:+.1f} of {b - a:+.1f} are {first.text}."


def sentence(found: Where) -> str:
    """Say which function has most of the difference."""
    whole = found.whole
    times = f"{whole.a_ms:.1f} ms of a worker's time in A and {whole.b_ms:.1f} in B"
    if not whole.is_sure:
        return f"A request takes {times}: the profile shows no difference."
    carrier = found.carrier
    if carrier is None:
        return f"A request takes {times}; no single function has most of the difference."
    return (
        f"A request takes {times}: {carrier.difference_ms:+.1f} of {whole.difference_ms:+.1f} ms "
        f"are in {carrier.name}."
    )
