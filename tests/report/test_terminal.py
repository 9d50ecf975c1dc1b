import io
import re
from dataclasses import replace

from made_workloads import workload
from realistic import keystone
from rendered import in_full, summary_of
from rich.console import Console

from loadstone.analysis.sla import Check
from loadstone.diagnosis.finding import AuditFinding
from loadstone.report import markdown, terminal
from loadstone.report.console import console
from loadstone.report.listing import listing
from loadstone.report.section import Row, Table, TableColumn
from loadstone.report.sections import search
from loadstone.report.sections.run import report_of
from loadstone.result.listing import Entry, MeasurementSummary, Performed
from loadstone.result.model import LAB
from loadstone.search.model import Capacity
from loadstone.search.settings import LONGEST_BUDGET_S

RESULT, SAMPLES = keystone()
CRITICAL = AuditFinding("KS-01", "critical", "KS-01 is bad.", "Mend it. Restart.", True)


def shown(draw, *, colour: bool = False, width: int = 80) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=colour, highlight=False, markup=False)
    draw(console)
    return file.getvalue()


def test_a_result_is_readable_at_80_columns_and_without_colour():
    for text in (summary_of(RESULT, 80), in_full(RESULT, 80)):
        assert "\x1b" not in text
        assert "…" not in text
    assert max(map(len, summary_of(RESULT, 80).splitlines())) <= 80


def test_the_summary_of_each_measurement_has_at_most_twelve_lines():
    found = replace(
        RESULT,
        measurements=(
            replace(RESULT.measurements[0], parameters=(("load time at most", "75 s"),)),
        ),
        environment=replace(RESULT.environment, audit=(CRITICAL,)),
    )
    text = summary_of(found, 80)
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) <= 12
    assert not text.endswith("\n\n")
    assert lines[0].startswith("token issue   Keystone 30.0.0 (2 workers, SQLite), 2 cores")
    assert lines[1].strip() == "N = 7.19 per second   (7.11 to 7.27, 95 %)"
    for line in (
        "  limited by  the machine's CPU: its 2 cores were 97 % busy at N",
        "  at 6.90/s   keeps up: p50 283, p95 324, p99 339 ms",
        "  at 8.40/s   falls behind: 7.17/s completed",
        "  failures    0 of 1,106",
        "  trust       valid (not trial 4): 99 % sent within 0.08 ms; generator 3.8 % CPU",
        "  try first   KS-01 critical: Mend it  (loadstone audit prove KS-01 --lab NAME)",
        f"  5 trials    loadstone results show {RESULT.run_id} --trials",
        f"  page        loadstone report {RESULT.run_id}",
    ):
        assert line in text.splitlines()


def test_a_narrow_interval_is_not_said_to_need_a_longer_search():
    found = RESULT.measurements[0]
    wide = replace(found.capacity, low_rps=6.0, high_rps=8.0)
    budget = (("load time at most", "75 s"),)
    for capacity, is_said in ((found.capacity, False), (wide, True)):
        one = replace(found, capacity=capacity, parameters=budget)
        text = summary_of(replace(RESULT, measurements=(one,)))
        assert ("--budget 5m, about half this width" in text) is is_said


def undecided(budget):
    found = replace(
        RESULT.measurements[0],
        capacity=Capacity(None, 53.0, 73.0, 0.0),
        parameters=(("load time at most", budget),),
    )
    return replace(RESULT, measurements=(found,))


def test_what_is_not_decided_is_one_line_that_says_what_to_try():
    text = summary_of(undecided("30 s"))
    assert "N between 53 and 73 per second" in text
    [line] = [line for line in text.splitlines() if "exit 4" in line]
    assert line.strip() == "not decided (exit 4): N 53 to 73, not confirmed. Try --budget 2m"


def test_a_longer_search_is_proposed_only_as_long_as_the_command_takes_it():
    assert search.MOST_BUDGET_S == LONGEST_BUDGET_S
    assert "Try --budget 50m" in summary_of(undecided("1200 s"))
    assert "Try" not in summary_of(undecided("3000 s"))
    assert "Try" not in summary_of(replace(undecided("30 s"), kind="study"))
    wide = replace(RESULT.measurements[0].capacity, low_rps=6.0, high_rps=8.0)
    found = replace(undecided("1200 s").measurements[0], capacity=wide)
    assert "about half this width" not in summary_of(replace(RESULT, measurements=(found,)))


def test_the_table_gives_each_trial_and_why_on_request():
    assert "backlog grew" not in summary_of(RESULT)
    text = in_full(RESULT)
    row = next(line for line in text.splitlines() if "6.90" in line and "sustained" in line)
    trial = RESULT.measurements[0].trials[2]
    assert f"{trial.stats.throughput_rps:.2f}" in row
    assert f"{1000 * trial.stats.total.p99_s:.0f}" in row
    assert "backlog grew by 3.9 s of work in 30 s" in text
    assert "sends were late" in text


def test_a_verdict_is_a_word_also_where_there_is_colour():
    report = report_of(RESULT)
    text = shown(lambda console: terminal.show_in_full(report, console), colour=True, width=120)
    assert "\x1b[32msustained" in text
    assert "\x1b[31mdegraded" in text


def test_a_name_in_a_table_is_not_broken():
    name = "keystone.cache.memcache_socket_timeout_seconds"
    cells = (name, "a value of several words " * 3, "another value of several words " * 3)
    columns = tuple(TableColumn(head) for head in ("setting", "A", "B"))
    for width in (80, 120):
        file = io.StringIO()
        console(file, width).print(terminal.drawn(Table("Settings", columns, (Row(cells),))))
        assert name in file.getvalue()


def test_a_run_that_failed_says_why():
    failed = replace(RESULT, status="failed", failure="Keystone died: exit 137", measurements=())
    assert "This run failed: Keystone died: exit 137." in summary_of(failed)


def test_square_brackets_of_a_service_are_not_taken_for_markup():
    odd = replace(RESULT, failure="cannot reach [::1]:5000 [red]", measurements=())
    assert "[::1]:5000 [red]" in summary_of(odd)


def test_the_list_gives_each_run_with_its_capacities():
    found = (
        MeasurementSummary("s", "token issue", 7.19, 7.11, 7.27),
        MeasurementSummary("v", "validation", None, 40.0, None),
        MeasurementSummary("i", "200 serial", None, None, None, 33.3, "fixed load"),
        MeasurementSummary("i", "unreachable", None, None, None, None, "fixed load"),
        MeasurementSummary("i", "alone", None, None, None, 20.2, "low load, to predict N"),
        MeasurementSummary("i", "cut", None, 30.4, 35.7, is_interrupted=True),
        MeasurementSummary("i", "under way", None, None, None, is_running=True),
    )
    entry = Entry("20261121-0931-ab12cd", "demo", "interrupted", "2026", None, found, 3)
    text = shown(lambda c: listing([entry, replace(entry, findings=())], c))
    assert max(map(len, text.splitlines())) <= 80
    assert "20261121-0931-ab12cd" in text
    assert "7.11 to 7.27" in text
    assert "at least 40.0" in text
    assert "33.3" in text
    assert "fixed load: nothing ended" in text
    assert "not known yet" in text
    assert "not found" not in text


def test_the_list_says_of_a_workload_that_it_did_not_end():
    times = (0.1, 0.2, 0.3, 0.4, 0.5, 0.2)
    cut, held, broken = (
        Performed("20261121-0931-ab12cd", 0, "s", "c", "2026", "finished", 3, 3, *times, pass_sla)
        for pass_sla in (None, True, False)
    )
    entry = Entry("20261121-0931-ab12cd", "task", "interrupted", "2026", None, (), 3)
    for performed, words in (
        ((cut,), "100 %, not ended"),
        ((*[held] * 6, cut), "7 workloads: s 1 not ended"),
        ((*[held] * 6, broken, cut), "8 workloads: s 1 failed, 1 not ended"),
        ((held,) * 7, "7 workloads: s all held"),
    ):
        one = replace(entry, performed=performed)
        assert words in " ".join(shown(lambda c, one=one: listing([one], c)).split())


def test_a_critical_finding_of_the_audit_is_what_to_try_first():
    found = (CRITICAL, replace(CRITICAL, rule="KS-02", severity="warning"))
    text = summary_of(replace(RESULT, environment=replace(RESULT.environment, audit=found)))
    assert "try first   KS-01 critical: Mend it  (loadstone audit prove KS-01 --lab NAME)" in text
    assert "KS-02" not in text


def test_the_proof_that_is_proposed_names_the_lab_that_was_measured():
    target = (*RESULT.environment.target, (LAB, "lesson"))
    found = replace(RESULT.environment, audit=(CRITICAL,), target=target)
    text = summary_of(replace(RESULT, environment=found))
    assert "(loadstone audit prove KS-01 --lab lesson)" in text
    of_pair = summary_of(replace(RESULT, environment=found, kind="compare"))
    assert "(loadstone audit prove KS-01 --lab NAME)" in of_pair  # its own labs are removed


def test_the_headline_counts_the_workers_of_each_node():
    target = (*RESULT.environment.target, ("nodes", "3"))
    text = summary_of(replace(RESULT, environment=replace(RESULT.environment, target=target)))
    assert "Keystone 30.0.0 (3 nodes of 2 workers, SQLite), 2 cores" in text


def test_each_workload_of_a_task_says_how_it_fell_short():
    held, broken = (workload(SAMPLES[0, 3], (Check("a", good, ""),)) for good in (True, False))
    failed = replace(broken, failure="no service")
    text = summary_of(replace(RESULT, measurements=(held, broken, failed)))
    assert "fell short (exit 1): the SLA is broken: a" in text
    assert "could not be carried out (exit 3): no service" in text
    assert text.count("(exit ") == 2


def test_with_one_failure_in_2500_iterations_no_format_says_100_percent():
    made = workload(SAMPLES[0, 3])
    [trial] = made.trials
    total = replace(trial.stats.total, count=2_500, ok=2_499)
    stats = replace(trial.stats, total=total, service=total, actions=())
    run = replace(RESULT, measurements=(replace(made, trials=(replace(trial, stats=stats),)),))
    for text in (summary_of(run), in_full(run), markdown.render(report_of(run))):
        assert "99.9 %" in text
        assert not re.search(r"\b100(\.0)? ?%", text)


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
            ("nodes", "3"),
            ("[token] expiration", "60"),
        ),
        duration_s=240.0,
    )
    text = shown(lambda c: listing([entry], c))
    head, about = text.splitlines()[:2]
    assert head.split("  ")[1:] == ["finished", "study 20261121-0900-ffffff, turn 3", "4 min"]
    service = "keystone 30.0.0, uwsgi 2.0.30, nodes 3, workers 2"
    assert about.strip() == f"http://127.0.0.1:35357/v3: {service}"
