"""Reads a task file and returns a checked task."""

import pathlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date

from loadstone.rally.task import arguments, template
from loadstone.rally.task.check import check
from loadstone.rally.task.checked import Checked
from loadstone.rally.task.draft import outline
from loadstone.rally.task.limits import MAX_BYTES
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.tree import NOT_TEXT, Path, Tree, Value, parse
from loadstone.system.paths import expanded
from loadstone.system.redaction import Redaction, secrets_in

_LINE_END = re.compile(rb"\r\n?")


def read(file: str, raw_arguments: str | None = None, arguments_file: str | None = None) -> Checked:
    """Read, render and check a task file ("-": stdin); raise TaskInvalid with all problems."""
    return check_tree(load(file, raw_arguments, arguments_file))


def load(file: str, raw_arguments: str | None = None, arguments_file: str | None = None) -> Tree:
    """Read and render a task file as Rally's own reader does, without checking its contents."""
    if file == "-" and arguments_file == "-":
        message = "only one of the task and --task-args-file can come from stdin"
        raise TaskInvalid([Problem("stdin", None, message)])
    source = text_of(file)
    args = arguments_file
    file_text = None if args is None else text_of(args, args or "--task-args-file")
    values = arguments.merge(args or "", file_text, raw_arguments)
    name = "stdin" if file == "-" else file
    folder = pathlib.Path() if file == "-" else expanded(file).parent
    secrets = secrets_in(values)
    with _without(secrets):
        rendered = template.render(source, name, folder, values)
        return replace(parse(rendered.text, name, rendered.origins), secrets=secrets)


def check_tree(tree: Tree) -> Checked:
    """Check a rendered file against the catalogue."""
    with _without(tree.secrets):
        _refuse_dates(tree)
        return check(outline(tree), tree)


@contextmanager
def _without(secrets: frozenset[str]) -> Iterator[None]:
    """Remove secrets from error messages."""
    try:
        yield
    except TaskInvalid as wrong:
        hidden = Redaction(secrets)
        raise TaskInvalid(
            replace(problem, message=hidden.text(problem.message)) for problem in wrong.problems
        ) from None


def _refuse_dates(tree: Tree) -> None:
    dates = [
        tree.problem(path, "is read as a date or as bytes; quote it if it is text")
        for path, value in _scalars(tree.value, ())
        if isinstance(value, date | bytes)
    ]
    if dates:
        raise TaskInvalid(dates)


def _scalars(value: Value, path: Path) -> list[tuple[Path, Value]]:
    if isinstance(value, dict):
        keys: list[tuple[Path, Value]] = [((*path, key), key) for key in value]
        return keys + [one for key, part in value.items() for one in _scalars(part, (*path, key))]
    if isinstance(value, list):
        return [one for i, part in enumerate(value) for one in _scalars(part, (*path, i))]
    return [(path, value)]


def text_of(file: str, name: str | None = None) -> str:
    """Read a file up to the maximum size of a task; `name` is for messages."""
    if not file:
        message = "the name of the file is empty; is a variable not set?"
        raise TaskInvalid([Problem(name or "TASK", None, message)])
    name = name or file
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with expanded(file).open("rb") as opened:
                data = opened.read(MAX_BYTES + 1)
    except OSError as wrong:
        raise TaskInvalid([Problem(name, None, f"cannot be read: {wrong.strerror}")]) from None
    if len(data) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1_000_000} MB, which no task needs"
        raise TaskInvalid([Problem(name, None, message)])
    try:
        # As Python opens a text file: a line may also end with CR, or CR and LF.
        return _LINE_END.sub(b"\n", data).decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = wrong.object.count(b"\n", 0, wrong.start) + 1
        raise TaskInvalid([Problem(name, line, NOT_TEXT)]) from None
