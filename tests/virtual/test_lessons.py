"""The lessons of the docs in virtual time: their commands exist and end as the pages say.

`tests/lessons` runs them in a shell.
"""

import click
import lessons
import pytest
from virtual import VirtualCommandLine

from loadstone.cli import loadstone as command_line


@pytest.mark.parametrize("name", lessons.NAMES)
def test_every_command_of_a_lesson_is_understood(
    name: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for step in lessons.steps(name):
        if isinstance(step, lessons.WrittenFile):
            (tmp_path / step.name).write_text(step.text)
    found = lessons.commands(name)
    assert found
    for words, _ in found:
        command: click.Command = command_line
        # `loadstone audit` is short for `loadstone audit check`.
        is_short = words[0] == "audit" and words[1].startswith("-")
        rest = ["audit", "check", *words[1:]] if is_short else list(words)
        context = click.Context(command)
        while isinstance(command, click.Group):
            _, inner, rest = command.resolve_command(context, rest)
            assert inner is not None
            command, context = inner, click.Context(inner, parent=context)
        command.make_context(command.name, rest, parent=context.parent)


@pytest.mark.parametrize("name", ["first", "latency", "limits"])
def test_the_searches_of_a_lesson_end_as_it_says(name: str, loadstone: VirtualCommandLine) -> None:
    service = None
    for words, code in lessons.commands(name):
        if words[0] == "serve":
            service = lessons.served(words)
        elif words[0] == "capacity":
            assert service is not None
            ended = loadstone(*words, service=service)
            assert ended.code == code, (words, ended.stdout)
        elif words[:2] in (("results", "list"), ("results", "show")):
            assert loadstone(*words).code == code


def test_the_comparisons_of_a_lesson_end_as_it_says(loadstone: VirtualCommandLine) -> None:
    found = lessons.commands("faster")
    a, b = (lessons.served(words) for words, _ in found if words[0] == "serve")
    compared = [(words, code) for words, code in found if words[0] == "compare"]
    assert len(compared) == 3
    for words, code in compared:
        assert loadstone(*words, clouds={"a": a, "b": b}).code == code
