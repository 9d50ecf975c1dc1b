"""`loadstone task`: checks Rally task files before any load."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.choose import Command
from loadstone.cli.stored import JSON, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.rally.task.checked import Checked
    from loadstone.rally.task.problem import Problem


def _load(_ctx: click.Context, _: click.Parameter, files: tuple[str, ...]) -> None:
    from loadstone.rally.functions.plugin import load_plugins

    load_plugins(files)


PLUGIN = click.option(
    "--plugin",
    "plugins",
    metavar="FILE.py",
    multiple=True,
    callback=_load,
    expose_value=False,
    help="File with your own scenarios; may be repeated.",
)


def template_options(command: Command) -> Command:
    """Add the options that fill a task's template."""
    text = "Template arguments as JSON, YAML or k=v,k2=v2; - reads them from stdin."
    command = click.option(
        "--task-args-file",
        "args_file",
        metavar="FILE",
        help="File with template arguments; use it for secrets.",
    )(command)
    return PLUGIN(click.option("--task-args", "raw", metavar="TEXT", help=text)(command))


def arguments_text(raw: str | None, file: str, args_file: str | None = None) -> str | None:
    """Return the text of --task-args; `-` reads stdin, which hides secrets from `ps`."""
    if raw != "-":
        return raw
    for other, name in ((file, "TASK"), (args_file, "--task-args-file")):
        if other == "-":
            raise click.UsageError(f"only one of {name} and --task-args can come from stdin")
    from loadstone.rally.task.read import text_of

    return text_of("-", "--task-args")


@click.group()
def task() -> None:
    """Check Rally task files before any load."""


@task.command()
@click.argument("file")
@template_options
@JSON
@click.pass_context
def check(
    ctx: click.Context, file: str, raw: str | None, args_file: str | None, to: Path | None
) -> None:
    """List every mistake in FILE (-: stdin), one per line. Contacts no cloud.

    Exit code 0 if the task can run, 2 if it cannot, 70 after an internal error.
    """
    from loadstone.rally.task.problem import TaskInvalid
    from loadstone.rally.task.read import read

    try:
        checked = read(file, arguments_text(raw, file, args_file), args_file)
        if problems := tuple(_of_requests(checked)):
            raise TaskInvalid(problems)
    except TaskInvalid as invalid:
        if to is not None:
            write_json(_data(None, invalid.problems), to)
        else:
            click.echo(str(invalid))
        ctx.exit(invalid.exit_code)
    if to is not None:
        write_json(_data(checked, ()), to)
    else:
        _show("stdin" if file == "-" else file, checked)


@task.command()
@PLUGIN
def schema() -> None:
    """Print the JSON Schema of task files, for editors and other programs."""
    import json

    from loadstone.rally.task.schema import schema as made

    click.echo(json.dumps(made(), indent=2))


def _of_requests(checked: "Checked") -> "Iterator[Problem]":
    """Yield what the engine cannot send or run, such as unknown arguments of HttpRequests."""
    from loadstone.engine.callables.model import require_room
    from loadstone.errors import InvalidInput
    from loadstone.rally.functions.catalogue import FUNCTIONS
    from loadstone.rally.runner import pacing
    from loadstone.rally.scenarios import is_data, scenario
    from loadstone.rally.task.problem import Problem

    for workload in checked.task.workloads:
        name = workload.scenario.name
        try:
            if is_data(name):
                scenario(name, workload.scenario.arguments)
            elif name in FUNCTIONS:
                pace = pacing(workload.runner)
                require_room("its runner", pace.load, pace.max_in_flight)
        except InvalidInput as refused:
            yield Problem(workload.file, workload.line, f"{name}: {refused}")


def _show(file: str, checked: "Checked") -> None:
    for warning in checked.warning_lines:
        click.echo(warning)
    task = checked.task
    click.echo(f"{file}: good; subtasks: {len(task.subtasks)}, workloads: {len(task.workloads)}")


def _data(checked: "Checked | None", problems: "tuple[Problem, ...]") -> dict[str, Any]:
    from dataclasses import asdict

    warnings = () if checked is None else checked.warnings
    return {
        "valid": checked is not None,
        "problems": [asdict(problem) for problem in problems],
        "warnings": [asdict(warning) for warning in warnings],
        "title": None if checked is None else checked.task.title,
        # Only names, as values may be passwords.
        "subtasks": [
            {
                "title": subtask.title,
                "workloads": [workload.scenario.name for workload in subtask.workloads],
            }
            for subtask in (() if checked is None else checked.task.subtasks)
        ],
    }
