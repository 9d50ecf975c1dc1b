"""Results of constant-rate trials, and capacities that are consistent with them."""

from dataclasses import dataclass, field, replace

from loadstone.analysis.model import Trial, TrialState
from loadstone.search.model import Capacity

NO_LOWER = "no lower rate was tried for long enough"  # of a limit that refuses


@dataclass(frozen=True, slots=True)
class RateOutcome:
    """One constant rate and whether it was sustained."""

    rate_rps: float
    is_sustained: bool


@dataclass(slots=True)
class TrialEvidence:
    """The rates that were sustained and those that were not, in the order of the trials."""

    shown: list[RateOutcome] = field(default_factory=list)

    def take(self, trial: Trial) -> None:
        """Record the result of a valid trial; undecided trials are ignored."""
        state = trial.verdict.state
        if trial.rate_rps is not None and state in (TrialState.SUSTAINED, TrialState.DEGRADED):
            is_sustained = state is TrialState.SUSTAINED
            self.shown.append(RateOutcome(trial.rate_rps, is_sustained))

    def forget(self) -> None:
        """Drop the results from before a change of the service."""
        self.shown.clear()

    @property
    def sustained_rps(self) -> float | None:
        """The highest rate that was sustained."""
        return max((one.rate_rps for one in self.shown if one.is_sustained), default=None)

    @property
    def failed_rps(self) -> float | None:
        """The lowest rate that failed."""
        return min((one.rate_rps for one in self.shown if not one.is_sustained), default=None)

    def agreed(self, found: Capacity) -> Capacity:
        """Return the capacity, corrected if a trial contradicts it.

        No upper bound is below a sustained rate, and "no more than" is only stated if no rate was
        sustained. "At least" is only stated for rates below all that failed. The lower bound of an
        interval is above a failed rate only if that rate or a higher one was sustained in another
        trial, so that the failure was noise.
        """
        low, high, failed = found.low_rps, found.high_rps, self.failed_rps
        if low is None:
            if high is None or self.sustained_rps is None:
                return found
            return self._bounded(found, "no more than")
        if high is not None:
            return self._widened(found, low, high)
        if failed is None or failed > low:
            return found
        return replace(self._bounded(found, "at least"), kind=None)

    def _bounded(self, found: Capacity, contradicted: str) -> Capacity:
        """Return a capacity between the rates that were tried, without the contradicted note.

        A rate above the lowest failed one may have been sustained: then only a failed rate above
        it is an upper bound.
        """
        failed, sustained = self.failed_rps, self.sustained_rps
        low = self._sustained_below(failed)
        above = [one.rate_rps for one in self.shown if not one.is_sustained]
        high = min((rate for rate in above if rate > (sustained or 0.0)), default=None)
        notes = _range(low, high)
        if failed is not None and sustained is not None and sustained > failed:
            both = f"{failed:.4g}/s failed in one trial and {sustained:.4g}/s held in another"
            notes = (*notes, both)
        # A lower rate than the one that the search found to be refused was tried.
        wrong = (contradicted, NO_LOWER)
        words = (*notes, *(one for one in found.words if not one.startswith(wrong)))
        return replace(
            found, rate_rps=None, low_rps=low, high_rps=high, confidence=0.0, words=words
        )

    def _widened(self, found: Capacity, low: float, high: float) -> Capacity:
        sustained, failed = self.sustained_rps, self.failed_rps
        notes: tuple[str, ...] = ()
        if found.rate_rps is not None:  # published methods may state a rate outside
            low, high = min(low, found.rate_rps), max(high, found.rate_rps)
        if sustained is not None and sustained > high:
            notes = (f"{sustained:.4g}/s was sustained in one trial",)
            high = sustained
        is_outdone = failed is not None and sustained is not None and sustained >= failed
        if failed is not None and failed < low and not is_outdone:
            notes = (*notes, f"{failed:.4g}/s was not sustained in one trial")
            low = self._sustained_below(failed) or 0.0
        return replace(found, low_rps=low, high_rps=high, words=(*found.words, *notes))

    def _sustained_below(self, failed_rps: float | None) -> float | None:
        rates = [one.rate_rps for one in self.shown if one.is_sustained]
        below = (rate for rate in rates if failed_rps is None or rate < failed_rps)
        return max(below, default=None)


def _range(low: float | None, high: float | None) -> tuple[str, ...]:
    if low is None and high is None:
        return ()
    if low is None:
        return (f"no more than {high:.4g}/s",)
    if high is None:
        return (f"at least {low:.4g}/s, which was sustained",)
    return (f"between {low:.4g}/s, which was sustained, and {high:.4g}/s",)
