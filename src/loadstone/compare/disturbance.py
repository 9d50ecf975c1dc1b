"""Other work on the machine during a comparison."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from loadstone.compare.pairs import is_usable
from loadstone.diagnosis.limit import OTHER_CORES
from loadstone.result.model import Run


def _used(runs: Sequence[Run]) -> Iterator[tuple[float, int]]:
    """Yield the cores that other work used during each trial, and the machine's cores.

    Where two trials took turns, the service of the other side is no other work.
    """
    trials = [
        (side, trial, trial.usage)
        for side, run in enumerate(runs)
        for one in run.measurements
        for trial in one.trials
        if is_usable(trial) and trial.usage is not None
    ]
    cpu_s = {
        (side, trial.number): usage.service_cpu_s or 0.0
        for side, trial, usage in trials
        if trial.turn
    }
    for side, trial, usage in trials:
        if usage.others_busy is not None and usage.wall_s > 0:
            others_s = cpu_s.get((1 - side, trial.number), 0.0) if trial.turn else 0.0
            yield usage.others_busy * usage.cores - others_s / usage.wall_s, usage.cores


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield how much CPU other work used, if that may hide a difference.

    A change that lets the service use more processors (workers, threads) has no effect if other
    work uses them.
    """
    used = list(_used(runs))
    if not used:
        return
    busy = fmean(cores for cores, _ in used)
    if busy > OTHER_CORES:
        yield (
            f"Other work used {busy:.1f} of the machine's {used[0][1]} cores during the trials: a "
            "gain that needs processors shows less or not at all. Measure again when it is quiet."
        )
