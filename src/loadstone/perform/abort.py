"""What --abort-on-sla-failure did: which iteration broke a rule, and what still ran after it."""

from collections.abc import Sequence

from loadstone.analysis.long_run import EXACT_ROWS
from loadstone.analysis.performance import Ended, ended, iterations_of
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.task.model import SlaRule
from loadstone.task.sla import Criterion, first_failure

ABORTED = "aborted_on_sla"
_RALLYS_WORDS = "Task was aborted due to SLA failure(s)."


def aborted(
    samples: Samples | SampleFile,
    actions: Sequence[str],
    rules: Sequence[SlaRule],
    sla: Sequence[Criterion],
) -> Criterion:
    """Give Rally's row for a task that was aborted, with where each rule broke.

    All iterations that ended are judged, those after the break, too, as in Rally. Where there are
    more than EXACT_ROWS requests, the break is not looked for.
    """
    if isinstance(samples, SampleFile):
        if samples.rows > EXACT_ROWS:
            return Criterion(ABORTED, False, _RALLYS_WORDS)
        samples = parquet.read(samples.path)
    rows, iterations = ended(samples, actions), iterations_of(samples, actions)
    broken = [
        f" {row.criterion} {_where(rows, at)}."
        for rule, row in zip(rules, sla, strict=True)
        if (at := first_failure([rule], iterations)) is not None
    ]
    return Criterion(ABORTED, False, _RALLYS_WORDS + "".join(broken))


def _where(rows: Ended, at: int) -> str:
    """Say which iteration broke the rule, in the order in which they ended, and what followed."""
    ends_s = rows.start_s + rows.duration_s + rows.idle_s
    after = len(rows.number) - at - 1
    later = int((rows.start_s[at + 1 :] > ends_s[at]).sum())
    return (
        f"broke with iteration {rows.number[at] + 1} (number {at + 1} to end); "
        f"{after} ended after it, {later} of them due only then"
    )
