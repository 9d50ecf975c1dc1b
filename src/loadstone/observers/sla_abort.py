"""Ends a load as soon as an SLA rule fails, and reports at which iteration."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loadstone.analysis.criteria import MaxPercentiles, MinIterations, MinThroughput, SlaRule
from loadstone.analysis.model import Trial
from loadstone.analysis.sla import Check, first_failure, judge_criteria
from loadstone.analysis.stats import EXACT_ROWS, Aggregator, EndedIterations, ended, iterations_of
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.result.observer import TrialObserver

ABORTED = "aborted_on_sla"
_RALLYS_WORDS = "Task was aborted due to SLA failure(s)."
# Loadstone's own rules, which can only be judged after the load.
_AT_THE_END = (MaxPercentiles, MinThroughput, MinIterations)


@dataclass(slots=True)
class SlaAbort(TrialObserver):
    """Judges all iterations that have ended, a few times a second, as Rally does after each."""

    rules: Sequence[SlaRule]
    is_broken: bool = field(default=False, init=False)  # once True, it stays True
    _samples: Samples | SampleFile | None = field(default=None, init=False)
    _aggregator: Aggregator = field(init=False)

    reads_samples = True

    def __post_init__(self) -> None:
        self._aggregator = Aggregator.of(self._live_rules)

    @property
    def _live_rules(self) -> list[SlaRule]:
        return [rule for rule in self.rules if not isinstance(rule, _AT_THE_END)]

    def on_samples(self, samples: Samples, actions: Sequence[str]) -> None:
        """Judge again, with the iterations that have ended since the last call."""
        if len(samples):
            self._aggregator.add(samples, actions)
            checks = judge_criteria(self._live_rules, self._aggregator.sums())
            self.is_broken = self.is_broken or not all(check.success for check in checks)

    def on_progress(self, progress: Progress) -> bool:  # noqa: ARG002
        """Stop the load once a rule is broken."""
        return not self.is_broken

    def on_load_end(self, samples: Samples | SampleFile) -> None:
        """Keep the samples, to find the iteration after which a rule failed."""
        self._samples = samples

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add Rally's row for a task that was aborted."""
        held = all(check.success for check in trial.checks)
        if (held and not self.is_broken) or self._samples is None:
            return trial
        row = aborted(self._samples, trial.actions, self.rules, trial.checks)
        return replace(trial, status="aborted", checks=(*trial.checks, row))


def aborted(
    samples: Samples | SampleFile,
    actions: Sequence[str],
    rules: Sequence[SlaRule],
    checks: Sequence[Check],
) -> Check:
    """Return Rally's row for a task that was aborted, with the iteration at which each rule failed.

    All ended iterations are judged, also those after the failure, as in Rally. With more than
    EXACT_ROWS requests, the iteration is not determined.
    """
    if isinstance(samples, SampleFile):
        if samples.rows > EXACT_ROWS:
            return Check(ABORTED, False, _RALLYS_WORDS)
        samples = parquet.read(samples.path)
    rows, iterations = ended(samples, actions), iterations_of(samples, actions)
    broken = [
        f" {row.criterion} {_where(rows, at)}."
        for rule, row in zip(rules, checks, strict=True)
        if (at := first_failure([rule], iterations)) is not None
    ]
    return Check(ABORTED, False, _RALLYS_WORDS + "".join(broken))


def _where(rows: EndedIterations, at: int) -> str:
    """Describe which iteration broke the rule, and how many followed."""
    ends_s = rows.start_s + rows.duration_s + rows.idle_s
    after = len(rows.number) - at - 1
    later = int((rows.start_s[at + 1 :] > ends_s[at]).sum())
    return (
        f"broke with iteration {rows.number[at] + 1} (number {at + 1} to end); "
        f"{after} ended after it, {later} of them due only then"
    )
