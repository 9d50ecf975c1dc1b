"""What constant-rate trials have shown, and statements that agree with it."""

from dataclasses import dataclass, field, replace

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.search.model import Capacity


@dataclass(frozen=True, slots=True)
class RateOutcome:
    """One constant rate and whether it was sustained."""

    rate_rps: float
    is_sustained: bool
    cause: Cause | None


@dataclass(slots=True)
class TrialEvidence:
    """The rates that were sustained and those that were not, in the order of the trials."""

    shown: list[RateOutcome] = field(default_factory=list)

    def take(self, trial: Trial) -> None:
        """Note what a valid trial showed; an undecided one shows nothing."""
        state = trial.verdict.state
        if trial.rate_rps is not None and state in (TrialState.SUSTAINED, TrialState.DEGRADED):
            is_sustained = state is TrialState.SUSTAINED
            self.shown.append(RateOutcome(trial.rate_rps, is_sustained, trial.verdict.cause))

    def forget(self) -> None:
        """Drop what was shown before the service changed."""
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
        """Return the statement, changed where a trial contradicts it.

        No upper bound lies below a rate that was sustained, and "no more than" is only said where
        no rate was sustained. "At least" is only said of rates below all that failed. A lower bound
        with an upper one lies above a failed rate only where that rate or a higher one was
        sustained in another trial: then noise failed it.
        """
        if self.sustained_rps is not None and found.low_rps is None and found.high_rps is not None:
            return self._between(found, self.sustained_rps)
        if found.low_rps is not None and found.high_rps is None:
            return self._below_failures(found, found.low_rps)
        if found.low_rps is not None and found.high_rps is not None:
            return self._widened(found, found.low_rps, found.high_rps)
        return found

    def _between(self, found: Capacity, sustained_rps: float) -> Capacity:
        """Replace "no more than": a rate was sustained."""
        low = self._sustained_below(self.failed_rps)
        above = [one.rate_rps for one in self.shown if not one.is_sustained]
        high = min((rate for rate in above if rate > sustained_rps), default=None)
        if high is None and low != sustained_rps:  # a rate failed, and a higher one was sustained
            high = sustained_rps
        words = (_range(low, high), *_without(found.words, "no more than"))
        return replace(found, rate_rps=None, low_rps=low, high_rps=high, words=words)

    def _below_failures(self, found: Capacity, low_rps: float) -> Capacity:
        """Replace "at least" where such a rate failed."""
        failed = self.failed_rps
        if failed is None or failed > low_rps:
            return found
        low, high = self._sustained_below(failed), max(failed, self.sustained_rps or 0.0)
        words = (_range(low, high), *_without(found.words, "at least"))
        return replace(
            found, rate_rps=None, low_rps=low, high_rps=high, confidence=0.0, words=words, kind=None
        )

    def _widened(self, found: Capacity, low: float, high: float) -> Capacity:
        sustained, failed = self.sustained_rps, self.failed_rps
        words: tuple[str, ...] = ()
        if found.rate_rps is not None:  # other people's methods may state a rate outside
            low, high = min(low, found.rate_rps), max(high, found.rate_rps)
        if sustained is not None and sustained > high:
            words = (f"{sustained:.4g}/s was sustained in one trial",)
            high = sustained
        is_outdone = failed is not None and sustained is not None and sustained >= failed
        if failed is not None and failed < low and not is_outdone:
            words = (*words, f"{failed:.4g}/s was not sustained in one trial")
            low = self._sustained_below(failed) or 0.0
        return replace(found, low_rps=low, high_rps=high, words=(*found.words, *words))

    def _sustained_below(self, failed_rps: float | None) -> float | None:
        rates = [one.rate_rps for one in self.shown if one.is_sustained]
        below = (rate for rate in rates if failed_rps is None or rate < failed_rps)
        return max(below, default=None)


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"no more than {high:.4g}/s: rates below it were sustained once and failed once"
    if high is None:
        return f"at least {low:.4g}/s, which was sustained"
    return f"between {low:.4g}/s, which was sustained, and {high:.4g}/s"


def _without(words: tuple[str, ...], beginning: str) -> tuple[str, ...]:
    return tuple(one for one in words if not one.startswith(beginning))
