"""A run in each format, as text or data."""

import io
import json
from typing import Any

from loadstone.report import html, junit, terminal
from loadstone.report.console import console
from loadstone.report.data import as_data
from loadstone.report.sections.charts import SamplesOf
from loadstone.report.sections.run import report_of
from loadstone.result.model import Run


def data_of(run: Run) -> dict[str, Any]:
    return json.loads(json.dumps(as_data(report_of(run)), allow_nan=False))


def measured(run: Run) -> dict[str, Any]:
    [one] = data_of(run)["measurements"]
    return one


def summary_of(run: Run, width: int = 120) -> str:
    file = io.StringIO()
    terminal.show(report_of(run), console(file, width))
    return file.getvalue()


def in_full(run: Run, width: int = 120) -> str:
    file = io.StringIO()
    terminal.show_in_full(report_of(run), console(file, width))
    return file.getvalue()


def page_of(run: Run, samples_of: SamplesOf | None = None) -> str:
    return html.render(report_of(run, samples_of))


def junit_of(run: Run) -> str:
    return junit.render(report_of(run))
