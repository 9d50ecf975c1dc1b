"""Results of a study: a row per cell, and the requested ratios."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean

from loadstone.analysis.interval import CONFIDENCE, Interval, of_logs, p_of_no_difference
from loadstone.result import Run
from loadstone.study.figure import Estimate, TurnFigure, of_turn, unsteady
from loadstone.study.model import Cell, Comparison, Pairs, Published, Study
from loadstone.study.order import Turn

# Of two values Student's t has one degree of freedom, and an interval of powers of ten.
LEAST_REPEATS = 3
MOST = 1000  # of a ratio: of two pairs that differ much, Student's t gives powers of ten


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """One turn with what came of it; neither result nor failure: it has not been measured."""

    turn: Turn
    result: Run | None
    failure: str | None = None

    def found(self, study: Study) -> dict[str | None, TurnFigure]:
        """What it showed, by step."""
        return of_turn(self.result, study.measurement) if self.result else {}

    def failures(self, study: Study) -> tuple[str, ...]:
        """Describe what went wrong: in the whole turn, or in steps of it."""
        if self.failure:
            return (self.failure,)
        untimed = unsteady(self.result, study.measurement) if self.result else {}
        return tuple(f"{step} (not timed): {why}" for step, why in untimed.items()) + tuple(
            f"{step}: {one.shortcoming}" if step else one.shortcoming
            for step, one in self.found(study).items()
            if one.shortcoming
        )


@dataclass(frozen=True, slots=True)
class TableRow:
    """One cell, or one step of it, over all repeats."""

    cell: Cell
    step: str | None  # None: of a search
    estimate: Estimate | None  # over the repeats; of one alone, what it says itself
    values: tuple[float | None, ...]  # of each repeat that was measured
    repeats: int  # wanted
    is_valid: bool | None  # the generator, in every repeat; None: nothing was measured
    published: Published | None
    failures: tuple[str, ...]
    run_ids: tuple[str, ...]

    @property
    def found(self) -> int:
        """In how many repeats it was found."""
        return sum(value is not None for value in self.values)


@dataclass(frozen=True, slots=True)
class Difference:
    """The ratio of two levels, other / base, where all else is equal."""

    comparison: Comparison
    step: str | None
    others: Pairs  # the levels of the other factors; of several combinations: what they share
    ratio: Interval
    p: float | None  # of no difference
    unit: str  # what was counted: "pairs" or "configurations"

    def __str__(self) -> str:
        ratio, one = self.ratio, self.comparison
        sides = [_side(one) for one in (ratio.low, ratio.high) if one is not None]
        interval = f" [{', '.join(sides)}]" if sides else ""
        unit = self.unit if ratio.count != 1 else self.unit[:-1]
        places = [f"{factor} {level}" for factor, level in self.others]
        where = ", ".join(([self.step] if self.step else []) + places)
        said = f"{one.other}/{one.base} = {ratio.mean:.3g}{interval}, {ratio.count} {unit}"
        return f"{said} ({where})" if where else said


def _side(ratio: float) -> str:
    """Return one end of a ratio's interval, limited to a factor of a thousand."""
    if ratio > MOST:
        return f"over {MOST:,}"
    return f"under {1 / MOST:g}" if ratio < 1 / MOST else f"{ratio:.3g}"


def rows(study: Study, outcomes: Sequence[TurnOutcome]) -> tuple[TableRow, ...]:
    """Return a row for each cell, in the order of the file."""
    of_cell: dict[Cell, list[TurnOutcome]] = defaultdict(list)
    for outcome in outcomes:
        of_cell[outcome.turn.cell].append(outcome)
    return tuple(
        _row(study, cell, step, of_cell[cell]) for cell in study.cells for step in study.steps
    )


def _row(study: Study, cell: Cell, step: str | None, outcomes: list[TurnOutcome]) -> TableRow:
    measured = sorted((o for o in outcomes if o.result), key=lambda o: o.turn.repeat)
    found = [o.found(study).get(step) for o in measured]
    valid = [one.is_valid for one in found if one is not None and one.is_valid is not None]
    estimates = [one.estimate if one else None for one in found]
    return TableRow(
        cell=cell,
        step=step,
        estimate=_over_repeats([one for one in estimates if one is not None]),
        values=tuple(one.value if one else None for one in estimates),
        repeats=study.repeats,
        is_valid=all(valid) if valid else None,
        published=next((one for one in study.published if one.is_of(cell, step)), None),
        failures=tuple(dict.fromkeys(why for o in outcomes for why in o.failures(study))),
        run_ids=tuple(o.result.run_id for o in measured if o.result),
    )


def _over_repeats(estimates: list[Estimate]) -> Estimate | None:
    """Return the mean with a t interval over repeats, or what the only one says itself."""
    found = [one for one in estimates if one.value]
    if len(found) < 2:
        return next(iter(found or estimates), None)
    over = of_logs([log(one.value) for one in found if one.value])
    if len(found) < LEAST_REPEATS:
        return Estimate(over.mean, None, None, 0.0)
    return Estimate(over.mean, over.low, over.high, CONFIDENCE)


def differences(study: Study, outcomes: Sequence[TurnOutcome]) -> tuple[Difference, ...]:
    """Return the ratios that the study asks for, paired by repeat.

    Each combination of the other factors' levels has its own ratio, over the pairs of its repeats.
    Where there are several combinations of one scenario, the ratio over them counts each as one:
    its repeats tell nothing of how the ratio scatters over configurations.
    """
    return tuple(
        found
        for one in study.comparisons
        for step in study.steps
        for found in _differences(study, one, step, outcomes)
    )


def _differences(
    study: Study, comparison: Comparison, step: str | None, outcomes: Sequence[TurnOutcome]
) -> Iterator[Difference]:
    pairs = _paired(study, comparison, step, outcomes)
    over: dict[str, list[tuple[Pairs, float]]] = defaultdict(list)
    for cell in study.cells:
        others = _others(cell, comparison.factor)
        logs = pairs.pop(others, None)
        if logs:
            yield _difference(comparison, step, others, logs, "pairs")
            over[cell.scenario].append((others, fmean(logs)))
    for means in over.values():
        if len(means) > 1:
            shared = tuple(p for p in means[0][0] if all(p in others for others, _ in means))
            logs = [mean for _, mean in means]
            yield _difference(comparison, step, shared, logs, "configurations")


def _difference(
    comparison: Comparison, step: str | None, others: Pairs, logs: list[float], unit: str
) -> Difference:
    return Difference(comparison, step, others, of_logs(logs), p_of_no_difference(logs), unit)


def _paired(
    study: Study, comparison: Comparison, step: str | None, outcomes: Sequence[TurnOutcome]
) -> dict[Pairs, list[float]]:
    """Return the logarithms of other / base by what else the two have in common."""
    values: dict[tuple[str, Pairs, int], float] = {}
    for outcome in outcomes:
        found = outcome.found(study).get(step)
        value = found.estimate.value if found and found.estimate else None
        if value:
            cell = outcome.turn.cell
            level = dict(cell.levels)[comparison.factor]
            others = _others(cell, comparison.factor)
            values[level, others, outcome.turn.repeat] = value
    pairs: dict[Pairs, list[float]] = defaultdict(list)
    for (level, others, repeat), value in values.items():
        base = values.get((comparison.base, others, repeat))
        if level == comparison.other and base is not None:
            pairs[others].append(log(value / base))
    return pairs


def _others(cell: Cell, factor: str) -> Pairs:
    return tuple((name, level) for name, level in cell.levels if name != factor)
