"""Resources that runs left in their clouds."""

from collections.abc import Sequence
from dataclasses import replace

from loadstone.diagnosis.finding import Severity
from loadstone.errors import FELL_SHORT
from loadstone.report.section import Report, Statement


def left(run_id: str, store: str = "") -> Statement:
    """Say that a run left something, and how to remove it; `store` is the option of its store."""
    text = f"Something that run {run_id} created in its cloud is left; remove it: "
    return Statement(f"{text}loadstone results clean {run_id}{store}", Severity.CRITICAL)


def with_left(report: Report, run_ids: Sequence[str], store: str = "") -> Report:
    """Return the report of a command of which these runs left something in their clouds."""
    if not run_ids:
        return report
    return replace(
        report,
        is_clean=False,
        exit_code=max(report.exit_code, FELL_SHORT),
        statements=(*report.statements, *(left(one, store) for one in run_ids)),
    )
