"""What a study found: a row per cell, and the ratios that were asked for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean

from loadstone.report.generator import generator_of
from loadstone.result import Result
from loadstone.search.model import Capacity
from loadstone.study.interval import CONFIDENCE, Interval, of_logs, p_of_no_difference
from loadstone.study.model import Cell, Comparison, Pairs, Published, Study
from loadstone.study.order import Turn


@dataclass(frozen=True, slots=True)
class Outcome:
    """One turn with what came of it; neither result nor failure: it has not been measured."""

    turn: Turn
    result: Result | None
    failure: str | None = None

    @property
    def capacity(self) -> Capacity | None:
        """What the search found."""
        return self.result.findings[0].capacity if self.result and self.result.findings else None

    @property
    def rate_rps(self) -> float | None:
        """N, where it was found."""
        return None if self.capacity is None else self.capacity.rate_rps

    @property
    def is_valid(self) -> bool | None:
        """Say whether the generator was not the limit; None: nothing was measured."""
        found = self.result and self.result.findings and generator_of(self.result.findings[0])
        return found.is_valid if found else None


@dataclass(frozen=True, slots=True)
class Row:
    """One cell over all repeats."""

    cell: Cell
    capacity: Capacity | None  # over the repeats; of one alone, what its own search says
    rates_rps: tuple[float | None, ...]  # N of each repeat that was measured
    repeats: int  # wanted
    is_valid: bool | None  # the generator, in every repeat; None: nothing was measured
    published: Published | None
    failures: tuple[str, ...]
    run_ids: tuple[str, ...]

    @property
    def found(self) -> int:
        """In how many repeats N was found."""
        return sum(rate is not None for rate in self.rates_rps)


@dataclass(frozen=True, slots=True)
class Difference:
    """The ratio of two levels, other / base, where all else is equal."""

    comparison: Comparison
    others: Pairs  # the levels of the other factors; of several combinations: what they share
    ratio: Interval
    p: float | None  # of no difference
    unit: str  # what was counted: "pairs" or "configurations"

    def __str__(self) -> str:
        ratio, one = self.ratio, self.comparison
        interval = f" [{ratio.low:.3g}, {ratio.high:.3g}]" if ratio.low and ratio.high else ""
        unit = self.unit if ratio.count != 1 else self.unit[:-1]
        where = ", ".join(f"{factor} {level}" for factor, level in self.others)
        said = f"{one.other}/{one.base} = {ratio.mean:.3g}{interval}, {ratio.count} {unit}"
        return f"{said} ({where})" if where else said


def rows(study: Study, outcomes: Sequence[Outcome]) -> tuple[Row, ...]:
    """Give a row for each cell, in the order of the file."""
    of_cell: dict[Cell, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        of_cell[outcome.turn.cell].append(outcome)
    return tuple(_row(study, cell, of_cell[cell]) for cell in study.cells)


def _row(study: Study, cell: Cell, outcomes: list[Outcome]) -> Row:
    measured = sorted((o for o in outcomes if o.result), key=lambda o: o.turn.repeat)
    valid = [o.is_valid for o in measured if o.is_valid is not None]
    return Row(
        cell=cell,
        capacity=_over_repeats([o.capacity for o in measured if o.capacity is not None]),
        rates_rps=tuple(o.rate_rps for o in measured),
        repeats=study.repeats,
        is_valid=all(valid) if valid else None,
        published=next((one for one in study.published if one.is_of(cell)), None),
        failures=tuple(dict.fromkeys(o.failure for o in outcomes if o.failure)),
        run_ids=tuple(o.result.run_id for o in measured if o.result),
    )


def _over_repeats(capacities: list[Capacity]) -> Capacity | None:
    """Give the mean N with a t interval over repeats, or what the only search says itself."""
    found = [one for one in capacities if one.rate_rps]
    if len(found) < 2:
        return next(iter(found or capacities), None)
    over = of_logs([log(one.rate_rps) for one in found if one.rate_rps])
    return Capacity(over.mean, over.low, over.high, CONFIDENCE)


def differences(study: Study, outcomes: Sequence[Outcome]) -> tuple[Difference, ...]:
    """Give the ratios that the study asks for, paired by repeat.

    Each combination of the other factors' levels has its own ratio, over the pairs of its repeats.
    Where there are several combinations of one scenario, the ratio over them counts each as one:
    its repeats tell nothing of how the ratio scatters over configurations.
    """
    return tuple(found for one in study.comparisons for found in _differences(study, one, outcomes))


def _differences(
    study: Study, comparison: Comparison, outcomes: Sequence[Outcome]
) -> Iterator[Difference]:
    pairs = _paired(comparison, outcomes)
    over: dict[str, list[tuple[Pairs, float]]] = defaultdict(list)
    for cell in study.cells:
        others = _others(cell, comparison.factor)
        logs = pairs.pop(others, None)
        if logs:
            yield _difference(comparison, others, logs, "pairs")
            over[cell.scenario].append((others, fmean(logs)))
    for means in over.values():
        if len(means) > 1:
            shared = tuple(p for p in means[0][0] if all(p in others for others, _ in means))
            yield _difference(comparison, shared, [mean for _, mean in means], "configurations")


def _difference(comparison: Comparison, others: Pairs, logs: list[float], unit: str) -> Difference:
    return Difference(comparison, others, of_logs(logs), p_of_no_difference(logs), unit)


def _paired(comparison: Comparison, outcomes: Sequence[Outcome]) -> dict[Pairs, list[float]]:
    """Give the logarithms of other / base by what else the two have in common."""
    rates: Mapping[tuple[str, Pairs, int], float] = {
        (dict(o.turn.cell.levels)[comparison.factor], _others(o.turn.cell, comparison.factor),
         o.turn.repeat): o.rate_rps
        for o in outcomes
        if o.rate_rps
    }  # fmt: skip
    pairs: dict[Pairs, list[float]] = defaultdict(list)
    for (level, others, repeat), rate_rps in rates.items():
        base_rps = rates.get((comparison.base, others, repeat))
        if level == comparison.other and base_rps is not None:
            pairs[others].append(log(rate_rps / base_rps))
    return pairs


def _others(cell: Cell, factor: str) -> Pairs:
    return tuple((name, level) for name, level in cell.levels if name != factor)
