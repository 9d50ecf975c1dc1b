import io
from dataclasses import replace

from realistic import keystone
from rich.console import Console

from loadstone.report import terminal
from loadstone.result import Entry, Found

RESULT, _ = keystone()


def shown(draw, *, colour: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=colour, highlight=False, markup=False)
    draw(console)
    return file.getvalue()


def test_a_result_is_readable_at_80_columns_and_without_colour():
    text = shown(lambda console: terminal.show(RESULT, console))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "…" not in text


def test_the_table_gives_each_trial_and_why():
    text = shown(lambda console: terminal.show(RESULT, console))
    row = next(line for line in text.splitlines() if "6.90" in line and "sustained" in line)
    trial = RESULT.findings[0].trials[2]
    assert f"{trial.summary.throughput_rps:.2f}" in row
    assert f"{trial.summary.latency.p99_ms:.0f}" in row
    assert "N: 7.19 per second   interval 7.11 to 7.27" in text
    assert "backlog grew by 3.9 s of work in 30 s" in text
    assert "sends were late" in text


def test_a_verdict_is_a_word_also_where_there_is_colour():
    text = shown(lambda console: terminal.show(RESULT, console), colour=True)
    assert "\x1b[32msustained" in text
    assert "\x1b[31mdegraded" in text


def test_a_run_that_failed_says_why():
    failed = replace(RESULT, status="failed", failure="Keystone died: exit 137", findings=())
    assert "It ended early: Keystone died" in shown(lambda c: terminal.show(failed, c))


def test_square_brackets_of_a_service_are_not_taken_for_markup():
    odd = replace(RESULT, failure="cannot reach [::1]:5000 [red]", findings=())
    assert "[::1]:5000 [red]" in shown(lambda c: terminal.show(odd, c))


def test_the_list_gives_each_run_with_its_capacities():
    found = (
        Found("s", "token issue", 7.19, 7.11, 7.27),
        Found("v", "validation", None, 40.0, None),
        Found("i", "200 serial", None, None, None, stretch_rps=33.3),
    )
    entry = Entry("20261121-0931-ab12cd", "demo", "interrupted", "2026", None, found, 3)
    text = shown(lambda c: terminal.listing([entry, replace(entry, findings=())], c))
    assert max(map(len, text.splitlines())) <= 80
    assert "20261121-0931-ab12cd" in text
    assert "7.11 to 7.27" in text
    assert "at least 40.0" in text
    assert "33.3" in text
    assert "not found" not in text
