"""The `loadstone` commands that pages show in their blocks of code."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from loadstone.cli import loadstone

COMMAND = re.compile(r"\s*(?:\$ )?(?:\S*/)?loadstone (.*)")
# A comment, a pipe, a redirection, the background, the next command.
END = re.compile(r"\s#\s|\s[|>&]|\s2>|;")
FILE = re.compile(r"[\w.-]+\.(?:yaml|json|zip|py|hosts|ini|txt|csv)")


def commands(page: str) -> Iterator[str]:
    """Yield the arguments of each command of a page; synopses (`[--option]`) are left out."""
    is_fenced = False
    for line in page.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        found = COMMAND.match(line) if is_fenced or line.startswith("    ") else None
        if found and "[-" not in found[1]:
            yield END.split(found[1])[0].strip()


def understand(line: str) -> None:
    """Parse a command as the command line does, without carrying it out; raises if it is wrong."""
    words = shlex.split(line)
    if "--plugin" in words:  # it would be loaded, for all tests of this process
        at = words.index("--plugin")
        del words[at : at + 2]
    # `loadstone audit` is short for `loadstone audit check`.
    if words[0] == "audit" and (words[1:2] == [] or words[1][0] == "-" or "." in words[1]):
        words = ["audit", "check", *words[1:]]
    command: click.Command = loadstone
    context, rest = click.Context(loadstone), words
    while isinstance(command, click.Group):
        _, inner, rest = command.resolve_command(context, rest)
        assert inner is not None
        command, context = inner, click.Context(inner, parent=context)
    command.make_context(command.name, list(rest), parent=context.parent)


def write_files(line: str, folder: Path) -> None:
    """Write the files that a command names, since options check that they exist."""
    for name in FILE.findall(line):
        (folder / name).write_text("{}")
