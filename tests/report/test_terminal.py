import io
from dataclasses import replace

from made_workloads import workload
from realistic import keystone
from rich.console import Console

from loadstone.analysis.sla import Check
from loadstone.diagnosis.finding import AuditFinding
from loadstone.report import terminal
from loadstone.report.listing import listing
from loadstone.result.listing import Entry, MeasurementSummary

RESULT, SAMPLES = keystone()


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
    trial = RESULT.measurements[0].trials[2]
    assert f"{trial.stats.throughput_rps:.2f}" in row
    assert f"{1000 * trial.stats.total.p99_s:.0f}" in row
    assert "N: 7.19 per second   interval 7.11 to 7.27" in text
    assert "backlog grew by 3.9 s of work in 30 s" in text
    assert "sends were late" in text


def test_a_verdict_is_a_word_also_where_there_is_colour():
    text = shown(lambda console: terminal.show(RESULT, console), colour=True)
    assert "\x1b[32msustained" in text
    assert "\x1b[31mdegraded" in text


def test_a_run_that_failed_says_why():
    failed = replace(RESULT, status="failed", failure="Keystone died: exit 137", measurements=())
    assert "It ended early: Keystone died" in shown(lambda c: terminal.show(failed, c))


def test_square_brackets_of_a_service_are_not_taken_for_markup():
    odd = replace(RESULT, failure="cannot reach [::1]:5000 [red]", measurements=())
    assert "[::1]:5000 [red]" in shown(lambda c: terminal.show(odd, c))


def test_the_list_gives_each_run_with_its_capacities():
    found = (
        MeasurementSummary("s", "token issue", 7.19, 7.11, 7.27),
        MeasurementSummary("v", "validation", None, 40.0, None),
        MeasurementSummary("i", "200 serial", None, None, None, stretch_rps=33.3),
        MeasurementSummary("i", "alone", None, None, None, 20.2, "low load, to predict N"),
        MeasurementSummary("i", "cut", None, 30.4, 35.7, is_interrupted=True),
    )
    entry = Entry("20261121-0931-ab12cd", "demo", "interrupted", "2026", None, found, 3)
    text = shown(lambda c: listing([entry, replace(entry, findings=())], c))
    assert max(map(len, text.splitlines())) <= 80
    assert "20261121-0931-ab12cd" in text
    assert "7.11 to 7.27" in text
    assert "at least 40.0" in text
    assert "33.3" in text
    assert "not found" not in text


def test_a_critical_finding_of_the_audit_is_shown_with_the_result():
    found = tuple(
        AuditFinding(rule, level, f"{rule} is bad.", "Mend it.")
        for rule, level in (("KS-01", "critical"), ("KS-02", "warning"))
    )
    audited = replace(RESULT, environment=replace(RESULT.environment, audit=found))
    text = shown(lambda c: terminal.show(audited, c))
    assert "KS-01, critical: KS-01 is bad. Try: Mend it." in text
    assert "KS-02" not in text


def test_a_task_says_at_its_end_how_many_workloads_fell_short():
    held, broken = (workload(SAMPLES[0, 3], (Check("a", good, ""),)) for good in (True, False))
    failed = replace(broken, failure="no service")
    result = replace(RESULT, measurements=(held, broken, failed))
    assert (
        f"Run {RESULT.run_id}, finished: 1 of 3 workloads could not be carried out, 1 of 3 "
        "workloads broke their SLA."
    ) in " ".join(shown(lambda c: terminal.show(result, c)).split())


def test_the_list_says_of_each_run_where_it_comes_from_and_what_was_measured():
    entry = Entry(
        "20261121-0931-ab12cd",
        "study",
        "finished",
        "2026-11-21T09:31:00+00:00",
        "2026-11-21T09:35:00+00:00",
        (),
        0,
        origin="study 20261121-0900-ffffff, turn 3",
        target="http://127.0.0.1:35357/v3",
        configuration=(
            ("release", "keystone 30.0.0"),
            ("web server", "uwsgi 2.0.30 (http-socket)"),
            ("workers", "2"),
            ("[token] expiration", "60"),
        ),
        duration_s=240.0,
    )
    text = shown(lambda c: listing([entry], c))
    head, about = text.splitlines()[:2]
    assert head.split("  ")[1:] == ["finished", "study 20261121-0900-ffffff, turn 3", "4 min"]
    assert about.strip() == "http://127.0.0.1:35357/v3: keystone 30.0.0, uwsgi 2.0.30, workers 2"
