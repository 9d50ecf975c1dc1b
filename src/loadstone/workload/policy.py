"""Load policies: the loads of a measurement, one trial each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loadstone.analysis.model import Stats, Trial
from loadstone.search.low_load import low_load
from loadstone.search.model import Capacity, Measure, Strategy, TrialRequest
from loadstone.search.run import search

PolicyResult = tuple[Capacity | None, tuple[Trial, ...]]


@dataclass(frozen=True, slots=True)
class Search:
    """A search for N."""

    strategy: Callable[[], Strategy]

    def run(self, measure: Measure) -> PolicyResult:
        """Run the trials that the strategy requests."""
        return search(self.strategy(), measure)


@dataclass(frozen=True, slots=True)
class Fixed:
    """One load."""

    request: TrialRequest

    def run(self, measure: Measure) -> PolicyResult:
        """Run the trial."""
        return None, (measure(self.request),)


@dataclass(frozen=True, slots=True)
class LowLoad:
    """A low load, from which capacity is predicted."""

    ceiling_rps: float

    def run(self, measure: Measure) -> PolicyResult:
        """Measure one request after the other, then load with a share of that throughput."""
        trials: list[Trial] = []
        load = low_load(self.ceiling_rps)
        try:
            request = next(load)
            while True:
                trials.append(measure(request))
                request = load.send(trials[-1])
        except StopIteration:
            return None, tuple(trials)


@dataclass(frozen=True, slots=True)
class Steps:
    """Loads that rise until a limit is reached."""

    requests: Callable[[], Iterable[TrialRequest]]
    is_last: Callable[[Stats], bool]

    def run(self, measure: Measure) -> PolicyResult:
        """Run the steps up to the limit."""
        trials: list[Trial] = []
        for request in self.requests():
            trials.append(measure(request))
            if trials[-1].status == "aborted" or self.is_last(trials[-1].stats):
                break
        return None, tuple(trials)


@dataclass(frozen=True, slots=True)
class Repeats:
    """One load, several times."""

    request: TrialRequest
    count: int

    def run(self, measure: Measure) -> PolicyResult:
        """Run the trials."""
        return None, tuple(measure(self.request) for _ in range(self.count))


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Loads that alternate with those of another target."""

    carry: Callable[[Measure], None]
    request: TrialRequest  # of each trial
    most: int  # trials
    profiled: str = ""  # purpose of the trials that are profiled, if the run profiles
    counted: str = ""  # purpose of those whose SQL statements are counted then

    def run(self, measure: Measure) -> PolicyResult:
        """Run `carry`, which decides when each trial runs."""
        self.carry(measure)
        return None, ()


LoadPolicy = Search | Fixed | LowLoad | Steps | Repeats | Interleaved
