"""Child process that renders a task file: JSON in, JSON out, with limits on time and memory.

A template is a program. It may only read files in its own folder, cannot reach Python's internals
(sandbox), and is killed if it uses more CPU or memory than any task needs.
"""

import builtins
import json
import math
import re
import resource
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from jinja2 import (
    FunctionLoader,
    Template,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    meta,
    nodes,
)
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.sandbox import SandboxedEnvironment

from loadstone.rally.task.limits import CPU_S, MAX_BYTES, MEMORY_BYTES

MARKED_MAX_BYTES = 10 * MAX_BYTES  # a mark is longer than many lines
MAIN = "the task file"  # the loader's name for the task file itself; includes have paths
# Private-use characters around "file:line", inserted before the text of that line.
OPEN, CLOSE = "\ue000", "\ue001"
MARK = re.compile(f"{OPEN}(\\d+):(\\d+){CLOSE}")
# Errors that expressions of a template or of an included file can raise.
FAILURES = (
    TemplateError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
)


class TemplateUnusable(Exception):
    """The template cannot be rendered; with file, line and reason."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        super().__init__(message)
        self.response = {"file": file, "line": line, "message": message}


class JsonMapping(dict[str, Any]):
    """A mapping that a template prints as JSON, as in Rally, so that YAML can read it."""

    def __repr__(self) -> str:
        return json.dumps(self)


def respond(request: Mapping[str, Any]) -> dict[str, Any]:
    """Render the requested template; return text and origins, or the one error."""
    try:
        return _render(request)
    except TemplateUnusable as refused:
        return refused.response
    except FAILURES as wrong:
        return _unusable(wrong, request["name"]).response


def _render(request: Mapping[str, Any]) -> dict[str, Any]:
    name, source = request["name"], request["source"]
    folder, arguments = Path(request["folder"]), request["arguments"]
    plain = _environment(folder, name, source)
    missing = _missing(plain, source, arguments)
    if missing:
        first = min(missing.values(), default=None)
        form = "next template task arguments" if len(missing) > 1 else "template task argument"
        message = f"Please specify {form}: {', '.join(sorted(missing))}"
        raise TemplateUnusable(name, first, f"{message} (--task-args or --task-args-file)")
    text = _output(plain, arguments, MAX_BYTES)
    return {"text": text, "origins": _origins(text, folder, request)}


def _environment(folder: Path, name: str, source: str) -> SandboxedEnvironment:
    def load(path: str) -> tuple[str, str, Callable[[], bool]]:
        if path == MAIN:
            return source, name, lambda: True
        return _included(folder, path), str(folder / path), lambda: True

    environment = SandboxedEnvironment(loader=FunctionLoader(load))
    environment.globals |= {"min": min, "max": max, "ceil": math.ceil, "round": round}
    return environment


def _included(folder: Path, reference: str) -> str:
    """Read a file that the template includes, from the task's own folder only."""
    root = folder.resolve()
    path = (folder / reference).resolve()
    inside = path.is_relative_to(root) and not PurePosixPath(reference).is_absolute()
    if not inside or ".." in PurePosixPath(reference).parts:
        raise TemplateNotFound(
            reference, f'"{reference}" is outside of the folder of the task file'
        )
    if not path.is_file():
        raise TemplateNotFound(reference, f'there is no file "{reference}" in the folder {folder}')
    if path.stat().st_size > MAX_BYTES:
        raise TemplateNotFound(
            reference, f'"{reference}" is larger than {MAX_BYTES // 1_000_000} MB'
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TemplateNotFound(reference, f'"{reference}" is not UTF-8 text') from None


def _missing(
    environment: SandboxedEnvironment, source: str, arguments: Mapping[str, Any]
) -> dict[str, int]:
    """Return undefined variables without a default that Rally accepts, each with its first line."""
    try:
        tree = environment.parse(source)
        undeclared = meta.find_undeclared_variables(tree)
    except TemplateSyntaxError:
        return {}  # rendering will report it with its line
    known = {*arguments, *dir(builtins), *environment.globals}
    names = {name for name in undeclared - known if not _has_default(name, source)}
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.name in names:
            lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    return {name: lines.get(name, 1) for name in names}


def _has_default(name: str, source: str) -> bool:
    """Return whether the template gives a default, by Rally's own two patterns."""
    by_set = re.search(rf"{{%\s*set\s+{name}\s*=\s*{name}[^\w]+", source)
    return bool(by_set or re.search(rf"{name}\s*\|\s*default\(", source))


def _unusable(error: BaseException, name: str) -> TemplateUnusable:
    """Return the error as a message with its line."""
    match error:
        case TemplateSyntaxError():
            return TemplateUnusable(error.filename or name, error.lineno, _line(error.message))
        case MemoryError():
            message = f"the template needs more than {MEMORY_BYTES // 2**20} MB of memory"
            return TemplateUnusable(name, None, message)
        case RecursionError():
            message = "the template nests, includes or calls itself too deep"
        case TemplateError():
            message = _line(error.message)
        case ValueError():
            message = str(error)
        case _:
            message = f"{type(error).__name__}: {error}"
    return TemplateUnusable(*_innermost(error.__traceback__, name), message)


def _line(message: str | None) -> str:
    return " ".join((message or "the template cannot be rendered").split())


def _output(environment: SandboxedEnvironment, arguments: Mapping[str, Any], cap: int) -> str:
    return "".join(_parts(environment.get_template(MAIN), arguments, cap))


def _parts(template: Template, arguments: Mapping[str, Any], cap: int) -> Iterator[str]:
    size = 0
    for part in template.generate(**{key: _shown(value) for key, value in arguments.items()}):
        size += len(part)
        if size > cap:
            raise ValueError(f"the template gives more than {cap // 1_000_000} MB; does it loop?")
        yield part


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return JsonMapping({key: _shown(part) for key, part in value.items()})
    if isinstance(value, list):
        return [_shown(part) for part in value]
    return value


def _innermost(trace: TracebackType | None, name: str) -> tuple[str, int | None]:
    """Return the line of the template that raised: the innermost frame outside Python files."""
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.endswith(".py")]
    templates = [frame for frame in frames if not frame.filename.startswith("<")]
    return (templates[-1].filename, templates[-1].lineno) if templates else (name, None)


def _origins(text: str, folder: Path, request: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the file and line that each rendered line came from.

    The template is rendered again with marks in it. Marks can change the result of filters and
    comparisons. If a line without its marks differs, its position is that in the rendered text.
    """
    name, lines = request["name"], text.split("\n")
    environment = _environment(folder, name, request["source"])
    files: list[str] = []
    environment.add_extension(_marks(files))
    rendered = [(f"{name} (rendered)", line) for line in range(1, len(lines) + 1)]
    try:
        marked = _output(environment, request["arguments"], MARKED_MAX_BYTES).split("\n")
    except FAILURES:
        return rendered
    if len(marked) != len(lines):
        return rendered
    return [
        origin if MARK.sub("", with_marks) == line else fallback
        for origin, with_marks, line, fallback in zip(
            _read_marks(marked, files), marked, lines, rendered, strict=True
        )
    ]


def _marks(files: list[str]) -> type:
    class Marks(Extension):
        """Inserts a mark before each line of the template's own text."""

        def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
            name = stream.filename or ""
            if name not in files:
                files.append(name)
            index = files.index(name)
            for token in stream:
                if token.type == "data":
                    lines = token.value.split("\n")
                    marked = "\n".join(
                        f"{OPEN}{index}:{token.lineno + i}{CLOSE}{line}"
                        for i, line in enumerate(lines)
                    )
                    yield Token(token.lineno, "data", marked)
                else:
                    yield token

    return Marks


def _read_marks(marked: list[str], files: list[str]) -> Iterator[tuple[str, int]]:
    """Return, for each line, the last mark before its first visible character."""
    current = (files[0] if files else "", 1)
    for line in marked:
        at = 0
        for mark in MARK.finditer(line):
            if line[at : mark.start()].strip():
                break
            current = (files[int(mark[1])], int(mark[2]))
            at = mark.end()
        yield current


def unpacked(value: Any) -> Any:
    """Return what `template.packed` was given, with dates as text."""
    if isinstance(value, dict):
        return {unpacked(key): unpacked(one) for key, one in value["pairs"]}
    return [unpacked(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    """Answer the request on stdin."""
    request = json.load(sys.stdin)
    request["arguments"] = unpacked(request["arguments"])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    json.dump(respond(request), sys.stdout)


if __name__ == "__main__":
    main()
