"""The documents name what there is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import documented_commands
import pytest

from loadstone.cli import COMMANDS, loadstone
from loadstone.errors import InvalidInput
from loadstone.system import files
from verification import check

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_names_every_command(command):
    assert f"loadstone {command}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_readme_begins_with_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert text.index("make demo") < text.index("make test") < text.index("## ")


def every_command(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{name} {word}")


@pytest.mark.parametrize(("name", "command"), list(every_command(loadstone, "loadstone")))
def test_every_command_and_option_has_a_help_text(name, command):
    undocumented = [
        option.opts[0]
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert command.help, name
    assert undocumented == []


def test_every_page_is_in_the_table_of_contents():
    for folder in (ROOT / "docs", ROOT / "docs/lessons"):
        contents = (folder / "index.md").read_text().split()
        pages = {page.stem for page in folder.glob("*.md")} - {"index"}
        assert pages == pages & set(contents)


def test_nothing_tells_to_install_loadstone_from_a_package_index():
    """Nobody owns the name there: whoever registers it would run code on the user's machines."""
    pages = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "docs" / "examples").iterdir()]
    installs = r"\b(?:pip|uv|pipx)\b[^\n`]*?\b(?:install|download)\b"
    named = re.compile(rf"{installs}[^\n`]*?\s['\"]?loadstone(?:\[|['\"\s=`]|$)")
    found = [
        f"{page}: {match[0]}"
        for page in pages
        if page.is_file() and page.suffix in {".py", ".md", ".yaml"}
        for match in named.finditer(page.read_text(encoding="utf-8"))
        if "--no-index" not in match[0]
    ]
    assert found == []


def test_measured_figures_claims_and_the_table_of_claims_agree():
    assert check.every_problem() == []


@pytest.mark.parametrize(("name", "command"), list(every_command(loadstone, "loadstone")))
def test_what_lists_exit_codes_lists_the_internal_error(name, command):
    text = command.help or ""
    if re.search(r"[Ee]xit codes?:? +(\n *)?\d|exit code is", text):
        assert "70" in text, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_of_exit_codes_has_the_internal_error(page):
    for table in re.findall(r"(?m)^\| exit code \|.*\n(?:\|.*\n)+", page.read_text()):
        assert "| 70 |" in table


def _messages() -> Iterator[str]:
    """Yield every text of the program, with … for what is filled in."""
    for path in (ROOT / "src/loadstone").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (one.value if isinstance(one, ast.Constant) else "…" for one in node.values)
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_troubleshooting_has_messages_that_the_program_prints():
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"(?m)^\| `([^`]+)`(?: \(.*\))? \|", text)
    assert len(quoted) > 25
    known = "\n".join(_messages()).lower()
    pieces = [one.strip(" ;:") for message in quoted for one in message.split("…")]
    assert [one for one in pieces if one.lower() not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_understood(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "is_writable", lambda _: True)  # folders of the reader's machine
    for line in documented_commands.commands(page.read_text(encoding="utf-8")):
        documented_commands.write_files(line, tmp_path)
        try:
            documented_commands.understand(line)
        except click.exceptions.Exit:  # --help, --version
            continue
        except (click.ClickException, InvalidInput) as wrong:
            pytest.fail(f"loadstone {line}: {getattr(wrong, 'message', wrong)}")
