"""The gain of a change as one self-contained paragraph."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from loadstone.compare.answer import ComparisonAnswer, MetricComparison, leading
from loadstone.compare.metrics import CPU
from loadstone.compare.section import Compared, interval, value_of
from loadstone.compare.turns import NotFull
from loadstone.monitor import machine
from loadstone.report import figures

SIDES = ("the service before the change", "the service after it")


def paragraph(
    found: Compared,
    changes: Sequence[str],
    memory_mb: tuple[float | None, float | None],
    command: str,
    not_full: NotFull | None = None,
) -> str:
    """Return the change, the gain with its interval, the cost and the method as one paragraph."""
    [(title, rows)] = found.metrics
    if not rows:
        said = f"With {', '.join(changes)}, nothing of {title} was measured."
        return f"{said}\nTo repeat it: {command}"
    # Each metric that can answer, as a change may raise throughput and make a request slower.
    first, *others = leading(rows)
    facts = dict(machine.facts())
    pairs = max(row.pairs for row in (first, *others))
    sentences = [
        f"With {', '.join(changes)}, {first.metric.name} of {title} {_effect(first, found)}",
        *(f"{figures.begun(row.metric.name)} {_effect(row, found)}" for row in others),
        *(() if not_full is None else (not_full.sentence(SIDES),)),
        *_costs(rows, memory_mb),
        f"Measured in {pairs} pairs of trials, in random order, on {facts['cores']} cores "
        f"({facts['processor']}) on {datetime.now(UTC):%Y-%m-%d}.",
        f"To repeat it: {command}",
    ]
    return "\n".join(sentences)


def _effect(row: MetricComparison, found: Compared) -> str:
    values = f"{value_of(row, row.a)} before, {value_of(row, row.b)} after"
    within = f"95 % interval {interval(row)}"
    match row.answer:
        case ComparisonAnswer.FASTER | ComparisonAnswer.SLOWER:
            word = "better" if row.answer is ComparisonAnswer.FASTER else "worse"
            return f"is {row.ratio:.3f} times what it was ({within}): {word}. {values}."
        case ComparisonAnswer.SAME:
            margin = figures.percent(found.criteria.same_within)
            return f"is the same within {margin} ({within}). {values}."
        case ComparisonAnswer.UNKNOWN:
            known = within if math.isfinite(row.high) else "too few pairs for an interval"
            return f"shows no difference that is sure ({known}). {values}."


def _costs(
    rows: Sequence[MetricComparison], memory: tuple[float | None, float | None]
) -> list[str]:
    costs = [
        f"CPU per request {value_of(row, row.a)} before, {value_of(row, row.b)} after"
        for row in rows
        if row.metric == CPU
    ]
    before, after = memory
    if before is not None and after is not None:
        costs.append(f"memory {before:,.0f} MB before, {after:,.0f} MB after")
    return [f"Also: {'; '.join(costs)}."] if costs else []
