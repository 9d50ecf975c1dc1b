"""Other work on the machine while a study measured."""

from collections.abc import Iterator, Sequence

from loadstone.report import figures
from loadstone.report.words import OTHERS
from loadstone.result import Result
from loadstone.study.table import Outcome


def disturbed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Say how much of the machine other work took, where it was so much that figures suffer."""
    shares = [taken(one.result) for one in outcomes if one.result is not None]
    much = [share for share in shares if share is not None and share >= OTHERS]
    if much:
        yield (
            f"Other work took {figures.percent(OTHERS)} of this machine's CPU or more in "
            f"{len(much)} of {len(shares)} measurements, {figures.percent(max(much))} at most: "
            f"on a quiet machine the figures would be better."
        )


def taken(result: Result) -> float | None:
    """Give the share of all cores that others took while load was made; None: not known."""
    used = [trial.usage for finding in result.findings for trial in finding.trials]
    known = [(one, one.others_busy) for one in used if one is not None]
    wall_s = sum(one.wall_s for one, others in known if others is not None)
    if not wall_s:
        return None
    shares = (one.wall_s * (others + one.machine_steal) for one, others in known if others)
    return sum(shares) / wall_s
