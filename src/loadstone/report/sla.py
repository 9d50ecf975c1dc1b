"""The SLA rules of a task's workloads, one row each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.analysis.sla import Check
from loadstone.result.model import Run


@dataclass(frozen=True, slots=True)
class SlaRow:
    """One rule of one workload; `position` is the index of the workload in its task."""

    scenario: str
    position: int
    rule: Check


def rows(run: Run) -> tuple[SlaRow, ...]:
    """Return all rules, by workload, in the order of Rally's `task sla-check`."""
    return tuple(
        SlaRow(measurement.scenario, position, rule)
        for position, measurement in enumerate(run.workloads)
        for rule in sorted(measurement.checks, key=lambda rule: rule.criterion)
    )


def table(sla_rows: Sequence[SlaRow]) -> Table:
    """Return the rules as a table for a terminal."""
    result = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in ("workload", "pos", "criterion", "status", "detail"):
        result.add_column(head, overflow="fold")
    for row in sla_rows:
        verdict = Text("PASS", "green") if row.rule.success else Text("FAIL", "bold red")
        result.add_row(
            row.scenario, str(row.position), row.rule.criterion, verdict, row.rule.detail
        )
    return result


def as_data(row: SlaRow) -> dict[str, Any]:
    """Return a rule in the keys of Rally's `task sla-check --json`."""
    return {
        "criterion": row.rule.criterion,
        "detail": row.rule.detail,
        "status": "PASS" if row.rule.success else "FAIL",
        "benchmark": row.scenario,
        "pos": row.position,
    }
