"""Output of runs and lists, and the command line for the record of a run."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from loadstone.result.model import Run
    from loadstone.run.backend import Backend
    from loadstone.store.location import StoreLocation
    from loadstone.workload.model import RunConfig

TASK_ARGS = "--task-args"
_AS_GIVEN: Mapping[str, str] = MappingProxyType({})


def show(
    run: "Run",
    location: "StoreLocation",
    to: TextIO | None,
    *,
    is_clean: bool,
    is_printed: bool = True,
    in_full: bool = False,
) -> None:
    """Print a run and write it as JSON to `to`; nothing is printed if `to` is stdout.

    `is_clean`: whether all that the run created in its cloud is removed.
    """
    from loadstone.cli.stored import write_json
    from loadstone.report import terminal
    from loadstone.report.console import console
    from loadstone.report.data import as_data
    from loadstone.report.sections.run import report_of

    report = report_of(run, store=location.option, is_clean=is_clean)
    if to is not None:
        write_json(as_data(report), to)
    if is_printed and (to is None or to.name != "-"):
        (terminal.show_in_full if in_full else terminal.show)(report, console())


def run_and_show(
    config: "RunConfig", backend: "Backend", location: "StoreLocation", to: TextIO | None
) -> int:
    """Measure and show the result, after Ctrl-C or a failure too; return the exit code."""
    from loadstone.cli.stored import open_store
    from loadstone.cli.watching import watching
    from loadstone.run.exit_code import exit_code, leftovers
    from loadstone.run.flow import run

    with open_store(location) as store:
        try:
            with watching(backend, store) as display:
                run(config, store, display, backend)
        finally:
            if store.holds(config.run_id):
                result = store.get(config.run_id)
                left = leftovers(store, result.run_id)
                show(result, location, to, is_clean=not left)
        return exit_code(result, left)


def show_rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a list without borders, one line per row, for `grep` and `awk`."""
    from rich.table import Table

    from loadstone.report.console import wide

    table = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for row in rows:
        table.add_row(*row)
    wide().print(table)


def command_line(shown: Mapping[str, str] = _AS_GIVEN) -> str:
    """Return the command for the record, without secrets; `shown` replaces whole arguments."""
    from loadstone.system.redaction import masked_command

    arguments = masked_command([shown.get(word, word) for word in sys.argv[1:]])
    for at, word in enumerate(sys.argv[1:]):
        option, _, value = word.partition("=")
        if word == TASK_ARGS and at + 1 < len(arguments):
            arguments[at + 1] = _masked_arguments(sys.argv[at + 2])
        elif option == TASK_ARGS and value:
            arguments[at] = f"{option}={_masked_arguments(value)}"
    return " ".join(["loadstone", *arguments])


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
