"""Output of runs and lists, and the command line for the record of a run."""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cli.stored import is_stdout_free, open_store, write, write_json
from loadstone.cli.watching import watching

if TYPE_CHECKING:
    from loadstone.report.section import Report
    from loadstone.report.sections.charts import SamplesOf
    from loadstone.result.model import Run
    from loadstone.run.backend import Backend
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store
    from loadstone.workload.model import RunConfig

TASK_ARGS = "--task-args"


def report_of_stored(
    store: "Store", run: "Run", samples_of: "SamplesOf | None" = None, prefix: str = ""
) -> "Report":
    """Return the report of a run in this store, with whether it left something in its cloud."""
    from loadstone.report.sections.run import report_of
    from loadstone.run.exit_code import with_leftovers

    is_clean = not with_leftovers(store, run).environment.has_leftovers
    return report_of(run, samples_of, prefix, store.location.option, is_clean=is_clean)


def write_formats(
    report: "Report",
    to: Path | None,
    markdown: Path | None = None,
    junit: Path | None = None,
) -> bool:
    """Write a report in the requested formats, `to` as JSON; return whether stdout is free."""
    if to is not None:
        from loadstone.report.data import as_data

        write_json(as_data(report), to)
    if markdown is not None:
        from loadstone.report import markdown as as_markdown

        write(as_markdown.render(report), markdown)
    if junit is not None:
        from loadstone.report import junit as as_junit

        write(as_junit.render(report), junit)
    return is_stdout_free(to, markdown, junit)


def print_report(report: "Report", *, in_full: bool = False) -> None:
    """Print a report: its summary, or all of it."""
    from loadstone.report import terminal
    from loadstone.report.console import console

    (terminal.show_in_full if in_full else terminal.show)(report, console())


def carry_out(
    config: "RunConfig",
    backend: "Backend",
    store: "Store",
    on_result: "Callable[[Run, Report], None]",
) -> "tuple[Run, Report]":
    """Measure and return the result; `on_result` also gets it after Ctrl-C or a failure."""
    from loadstone.run.flow import run

    try:
        with watching(backend, store) as display:
            run(config, store, display, backend)
    finally:
        if store.holds(config.run_id):
            result = store.get(config.run_id)
            report = report_of_stored(store, result)
            on_result(result, report)
    return result, report


def run_and_show(
    config: "RunConfig",
    backend: "Backend",
    location: "StoreLocation",
    to: Path | None,
    junit: Path | None = None,
) -> int:
    """Measure and show the result, after Ctrl-C or a failure too; return the exit code."""

    def show_formats(_run: "Run", report: "Report") -> None:
        if write_formats(report, to, junit=junit):
            print_report(report)

    with open_store(location) as store:
        return carry_out(config, backend, store, show_formats)[1].exit_code


def show_rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a list without borders, one line per row, for `grep` and `awk`."""
    from rich.table import Table

    from loadstone.report.console import wide

    table = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for row in rows:
        table.add_row(*row)
    wide().print(table)


def command_line(shown: Mapping[str, str] | None = None) -> str:
    """Return the command for the record, without secrets; `shown` replaces whole arguments."""
    from loadstone.system.redaction import masked_command

    arguments = masked_command([(shown or {}).get(word, word) for word in sys.argv[1:]])
    for at, word in enumerate(sys.argv[1:]):
        option, _, value = word.partition("=")
        if word == TASK_ARGS and at + 1 < len(arguments):
            arguments[at + 1] = _masked_arguments(sys.argv[at + 2])
        elif option == TASK_ARGS and value:
            arguments[at] = f"{option}={_masked_arguments(value)}"
    return shlex.join(["loadstone", *arguments])


def _masked_arguments(raw: str) -> str:
    """Mask all texts, as any may be a secret; the rendered task is stored in any case."""
    import json

    from loadstone.rally.task.arguments import merge
    from loadstone.rally.task.problem import TaskInvalid
    from loadstone.system.redaction import MASK, masked

    if raw == "-":
        return raw
    try:
        arguments = masked(merge("", None, raw))
    except TaskInvalid:
        return MASK
    return json.dumps(_without_texts(arguments))


def _without_texts(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_texts(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_texts(part) for part in value]
    return "***" if isinstance(value, str) else value
