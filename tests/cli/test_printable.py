"""Control characters of others are shown, and never reach the terminal."""

import io
import json

import pytest
from command_line import CommandLine
from fake_server import answering, serving
from rich.table import Table
from rich.text import Text

from loadstone.report.console import PrintableConsole, console
from loadstone.report.junit import clean
from loadstone.system.printable import visible

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egnp.exe\u2066\x08\x7f\x00"
SIGNS = sorted(set(HOSTILE) - set("0123456789;[]mJownedgpx."))


def no_sign_in(text):
    return not any(sign in text for sign in SIGNS)


def test_control_characters_become_visible_and_others_stay():
    assert visible("a\x1b[31m\u202eb\x9b\U000e0041") == "a\\x1b[31m\\u202eb\\u009b\\udb40\\udc41"
    assert visible("naïve ± 5 %\t→ 🙂\n") == "naïve ± 5 %\t→ 🙂\n"


def test_json_with_visible_characters_means_the_same():
    text = json.dumps({"name": HOSTILE + "\U000e0041"}, ensure_ascii=False)
    assert json.loads(visible(text)) == json.loads(text)


@pytest.mark.processes
@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_table_shows_them_and_keeps_its_own_colours(is_terminal):
    file = io.StringIO()
    to = PrintableConsole(file=file, force_terminal=is_terminal, width=200)
    table = Table("name", title=Text(HOSTILE))
    table.add_row(Text(f"good {HOSTILE}", style="red"))
    to.print(table)
    to.print(HOSTILE, markup=False)
    printed = file.getvalue()
    assert printed.count("\\x1b") >= 3
    assert not any(sign in printed for sign in ("\u202e", "\x9b", "\r", "\x08"))
    assert ("\x1b[31mgood" in printed) is is_terminal
    if not is_terminal:
        assert no_sign_in(printed)
    assert "\x1b]0" not in printed
    assert "\x1b[2J" not in printed


def test_the_console_of_results_shows_them():
    file = io.StringIO()
    console(file).print(HOSTILE)
    assert no_sign_in(file.getvalue())


def test_junit_holds_none():
    assert no_sign_in(clean(HOSTILE))


@pytest.mark.processes
@pytest.mark.parametrize("status", [400, 500])
def test_what_a_server_says_is_shown_on_one_line(tmp_path, status):
    body = json.dumps({"error": {"code": status, "message": f"no: {HOSTILE}"}}).encode()
    with serving(answering(status, body)) as url:
        ended = CommandLine(tmp_path)("capacity", "--budget", "20s", url=f"{url}/v3")
    assert ended.returncode == 3
    assert no_sign_in(ended.stderr + ended.stdout)


@pytest.mark.processes
def test_a_file_name_is_shown(tmp_path):
    ended = CommandLine(tmp_path)("run", f"{HOSTILE[:-1]}.yaml")
    assert ended.returncode == 2
    assert no_sign_in(ended.stderr)
    assert "\\x1b" in ended.stderr


@pytest.mark.processes
def test_the_help_has_no_colours_in_a_pipe(tmp_path):
    assert "\x1b" not in CommandLine(tmp_path)("--help").stdout
