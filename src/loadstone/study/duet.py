"""Two cells of a study that are loaded in turns, for the ratio of their throughput.

The ratio of two searches has the scatter of both, and of what the machine did between them. Loads
in turns have little of either (`compare.turns`).
"""

from dataclasses import dataclass

from loadstone.compare.answer import Criteria
from loadstone.compare.measure import ComparisonConfig, Side
from loadstone.compare.metrics import THROUGHPUT
from loadstone.lab.keystone import settings
from loadstone.plan.load import ClosedLoad
from loadstone.result.model import Tags
from loadstone.study.cell import searched_of
from loadstone.study.model import Cell, LevelComparison, SearchMeasurement, Study
from loadstone.target.choice import OwnLab

ERROR_RATE = 0.025  # chance of any false "faster" or "slower" among the cells in turns of a study
FEWEST_PAIRS = 8  # of trials, before the answer counts
TRIAL_S = 3.0
LEAST_WARM_UP_S = 10.0  # a turn of each side, on a worker that takes 0.6 s for a login
FLEET = "the loads of a fleet cannot take turns: ratios are those of the repeats"
LEAST_IN_FLIGHT = 8
OF_EACH_WORKER = 2  # requests in flight, so that no worker waits for one
# Requests in flight that threads alone make it. Threads of Python share a core, so that a turn of
# more takes seconds; where they do wait for something else, `ThroughputRatio.not_full` says so.
MOST_OF_THREADS = 64


@dataclass(frozen=True, slots=True)
class CellPair:
    """Two cells that differ in the compared factor only."""

    number: int  # in the study's journal, after its last turn
    comparison: LevelComparison
    base: Cell
    other: Cell

    def __str__(self) -> str:
        one = self.comparison
        where = ", ".join(f"{name} {level}" for name, level in self.base.others(one.factor))
        return f"{one.other} / {one.base}" + (f" ({where})" if where else "")


def cell_pairs(study: Study) -> tuple[CellPair, ...]:
    """Return the pairs of cells that are loaded in turns, in the order of the file.

    Cells of different scenarios or services have no load in common.
    """
    if not study.pairs_in_turns:
        return ()
    by_levels = {cell.levels: cell for cell in study.cells if not cell.is_reference}
    found = []
    for one in study.comparisons:
        for base in by_levels.values():
            if base.level(one.factor) != one.base:
                continue
            other = by_levels.get(base.levels_with(one.factor, one.other))
            if other is not None and _load(base) == _load(other):
                found.append((one, base, other))
    first = len(study.cells) * study.repeats + 1
    return tuple(CellPair(number, *pair) for number, pair in enumerate(found, first))


def _load(cell: Cell) -> tuple[str, str]:
    return cell.scenario, cell.service


def comparison_of(
    study: Study, study_id: str, pair: CellPair, command: str, tags: Tags = ()
) -> ComparisonConfig:
    """Return the comparison of a pair of cells, each on a lab of its own."""
    measurement = search_of(study)
    cells = (pair.base, pair.other)
    labs = [settings.read(cell.settings) for cell in cells]
    names = (pair.comparison.base, pair.comparison.other)
    sides = [
        Side(name, OwnLab(f"study-{study_id}-{side}", lab, is_purged=True), cell.expected)
        for name, side, lab, cell in zip(names, "ab", labs, cells, strict=True)
    ]
    most = study.pairs_in_turns
    alpha = ERROR_RATE / len(cell_pairs(study))
    return ComparisonConfig(
        sides=(sides[0], sides[1]),
        searched=searched_of(measurement, pair.base),
        load=ClosedLoad(max(map(_in_flight, labs)), duration_s=TRIAL_S),
        criteria=Criteria(most, min(FEWEST_PAIRS, most), alpha),
        command=command,
        metric=THROUGHPUT,
        tags=tags,
        parameters=(("study", f"{study_id}, in turns"), ("cells", str(pair))),
        max_rate_rps=measurement.max_rate_rps,
        warm_up_s=warm_up_s(measurement, pair),
    )


def _in_flight(lab: settings.LabSettings) -> int:
    """Return the requests in flight that keep every worker of a lab busy."""
    of_workers = OF_EACH_WORKER * lab.workers * lab.nodes
    return max(LEAST_IN_FLIGHT, of_workers, min(of_workers * lab.threads, MOST_OF_THREADS))


def search_of(study: Study) -> SearchMeasurement:
    """Return the search of a study whose cells take turns."""
    if not isinstance(study.measurement, SearchMeasurement):
        raise AssertionError("only the cells of a search take turns")
    return study.measurement


def warm_up_s(measurement: SearchMeasurement, pair: CellPair) -> float:
    """Return the seconds of load before the trials that count."""
    # Each side has half of it.
    return max(LEAST_WARM_UP_S, 2 * measurement.warm_up_of(pair.base.service))
