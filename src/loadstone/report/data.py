"""A report as JSON-compatible data; `report/result.schema.json` describes it."""

import math
from dataclasses import asdict
from typing import Any

from loadstone.report.section import Report, Section

SCHEMA_VERSION = 3


def as_data(report: Report) -> dict[str, Any]:
    """Return a report as data: one entry of `measurements` for each; unknown numbers are null."""
    return {
        "schema_version": SCHEMA_VERSION,
        **report.data,
        "headline": report.title,
        "exit_code": report.exit_code,
        "next_steps": [asdict(one) for one in report.steps],
        "statements": [asdict(one) for one in report.statements],
        "measurements": [_section(one) for one in report.sections],
    }


def _section(section: Section) -> dict[str, Any]:
    answer, certainty = section.answer, section.certainty
    return {
        **section.data,
        "name": section.name or section.title,
        "answer": {
            "label": answer.label,
            "text": answer.text,
            "unit": answer.unit,
            "value": finite(answer.value),
            "low": finite(answer.low),
            "high": finite(answer.high),
            "confidence": answer.confidence,
            "sentence": answer.sentence,
        },
        "certainty": {
            "text": certainty.text,
            "exit_code": certainty.exit_code,
            "reason": certainty.reason or None,
        },
        "limit": section.limit or None,
        "facts": [{"label": one.label, "text": one.text} for one in section.facts if one.is_line],
        "statements": [asdict(one) for one in section.statements],
        "method": list(section.method),
    }


def finite(value: float | None) -> float | None:
    """Return a number; None for an unknown one and for what JSON cannot hold."""
    return value if value is not None and math.isfinite(value) else None
