"""Other work on the machine during a comparison."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from loadstone.compare.pairs import is_usable
from loadstone.diagnosis.limit import OTHER_CORES
from loadstone.report import figures
from loadstone.result.model import Run


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield how much CPU other work used, if that may hide a difference.

    A change that lets the service use more processors (workers, threads) has no effect if other
    work uses them.
    """
    usages = [
        trial.usage
        for run in runs
        for one in run.measurements
        for trial in one.trials
        if is_usable(trial) and trial.usage is not None
    ]
    busy = [one.others_busy * one.cores for one in usages if one.others_busy is not None]
    if busy and fmean(busy) > OTHER_CORES:
        yield (
            f"Other work used {fmean(busy):.1f} of the machine's "
            f"{figures.counted(usages[0].cores, 'core')} during the trials: a gain that needs "
            "processors shows less or not at all. Measure again when it is quiet."
        )
