"""A task file, from its path to a checked task."""

import pathlib
import sys
from datetime import date

from loadstone.task import arguments, template
from loadstone.task.check import check
from loadstone.task.checked import Checked
from loadstone.task.draft import outline
from loadstone.task.limits import MAX_BYTES
from loadstone.task.problem import Problem, TaskInvalid
from loadstone.task.tree import Path, Tree, Value, parse


def read(file: str, raw_arguments: str | None = None, arguments_file: str | None = None) -> Checked:
    """Read, render and check a task file ("-": stdin); raises TaskInvalid with all problems."""
    return check_tree(load(file, raw_arguments, arguments_file))


def load(file: str, raw_arguments: str | None = None, arguments_file: str | None = None) -> Tree:
    """Read and render a task file, as Rally's own reader does, without looking at its meaning."""
    source = _text(file)
    given = None if arguments_file is None else _text(arguments_file)
    values = arguments.merge(arguments_file or "", given, raw_arguments)
    name = "stdin" if file == "-" else file
    folder = pathlib.Path() if file == "-" else pathlib.Path(file).expanduser().parent
    rendered = template.render(source, name, folder, values)
    return parse(rendered.text, name, rendered.origins)


def check_tree(tree: Tree) -> Checked:
    """Check what was read against the catalogue."""
    _refuse_dates(tree)
    return check(outline(tree), tree)


def _refuse_dates(tree: Tree) -> None:
    found = [
        tree.problem(path, "is read as a date or as bytes; quote it if it is text")
        for path, value in _scalars(tree.value, ())
        if isinstance(value, date | bytes)
    ]
    if found:
        raise TaskInvalid(found)


def _scalars(value: Value, path: Path) -> list[tuple[Path, Value]]:
    if isinstance(value, dict):
        return [one for key, part in value.items() for one in _scalars(part, (*path, key))]
    if isinstance(value, list):
        return [one for i, part in enumerate(value) for one in _scalars(part, (*path, i))]
    return [(path, value)]


def _text(file: str) -> str:
    """Read a file, never more than a task may have."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with pathlib.Path(file).expanduser().open("rb") as opened:
                data = opened.read(MAX_BYTES + 1)
    except OSError as wrong:
        raise TaskInvalid([Problem(file, None, f"cannot be read: {wrong.strerror}")]) from None
    if len(data) > MAX_BYTES:
        raise TaskInvalid([Problem(file, None, template.too_big("the file"))])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise TaskInvalid([Problem(file, line, "is not UTF-8 text")]) from None
