"""Other work on the machine during the measurements of a study."""

from collections.abc import Iterator, Sequence

from loadstone.diagnosis.limit import OTHERS
from loadstone.report import figures
from loadstone.result.model import LAB_HOST, Run
from loadstone.study.table import TurnOutcome


def disturbance_lines(outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Describe the CPU usage of other processes if it distorts the results."""
    shares = [others_share(one.result) for one in outcomes if one.result is not None]
    high = [share for share in shares if share is not None and share >= OTHERS]
    if high:
        yield (
            f"Other work took {figures.percent(OTHERS)} of this machine's CPU or more in "
            f"{len(high)} of {len(shares)} measurements, {figures.percent(max(high))} at most: "
            f"on a quiet machine the figures may differ."
        )


def others_share(run: Run) -> float | None:
    """Return the share of all cores that other processes used during the load, if known."""
    if LAB_HOST in dict(run.environment.target):  # the service ran on another machine
        return None
    usages = [trial.usage for one in run.measurements for trial in one.trials]
    known = [(one, one.others_busy) for one in usages if one is not None]
    wall_s = sum(one.wall_s for one, others in known if others is not None)
    if not wall_s:
        return None
    shares = (one.wall_s * (others + one.machine_steal) for one, others in known if others)
    return sum(shares) / wall_s
