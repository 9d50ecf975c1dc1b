"""Faults in every form of a result."""

from dataclasses import replace

import numpy as np
import result_schema
from realistic import keystone
from rendered import data_of, in_full, measured, page_of, summary_of
from scripted import Scripted, made, simulated

from loadstone.analysis.fault import FaultEffect, FaultPhase, Injection
from loadstone.analysis.fault_effect import effect
from loadstone.diagnosis.finding import Confidence, Finding
from loadstone.engine.outcome import Outcome
from loadstone.monitor.service import EndedProcess
from loadstone.report.sections import fault
from loadstone.result.outcome import exit_code
from loadstone.store import codec

ACTION = "kill mysql service on one node"
RESULT, SAMPLES = keystone()


def run_of(*effects: FaultEffect):
    [first, *_] = RESULT.measurements
    trials = tuple(
        replace(first.trials[0], number=number, faults=(one,))
        for number, one in enumerate(effects, 1)
    )
    measurement = replace(first, policy="fixed", capacity=None, trials=trials)
    return replace(RESULT, kind="fault", measurements=(measurement,))


def killed(seconds: float) -> FaultEffect:
    dark = Scripted("dark", 10.0, seconds)
    return effect(simulated(dark, 1), Injection(ACTION, 10.0, 10.0 + seconds, 0.5, ("mariadb",)))


RUN = run_of(killed(1.0), killed(2.0))


def test_data_has_each_repeat_and_their_means_beside_what_was_published() -> None:
    result_schema.check(data_of(RUN))
    data = measured(RUN)
    assert [one["repeat"] for one in data["faults"]] == [1, 2]
    [summary] = data["faults_summary"]
    assert summary["recovered"] == 2
    assert 1.4 < summary["downtime_s"]["mean"] < 1.6
    assert summary["published"]["downtime_s"] == {"mean": 14.7, "plus_minus": 1.4}


def test_a_phase_after_the_load_is_not_said_to_have_failed() -> None:
    phases = (FaultPhase("node 1 was out", 10.0, 12.0), FaultPhase("node 2 was out", 500.0, 510.0))
    rows = simulated(Scripted("none", 10.0, 0.0), 1)
    one = effect(rows, Injection("rolling restart", 10.0, 510.0, phases=phases))
    [run] = run_of(one).measurements
    _, table = fault.tables(run)
    first, last = (row.cells for row in table.rows)
    assert first[:3] == ("node 1 was out", "10.0 to 12.0 s", "0 of 100")
    assert last == ("node 2 was out", "500.0 to 510.0 s", "no request was due", "")


def test_a_fault_without_figures_says_nothing() -> None:
    run = run_of(killed(1.0))
    [one] = run.measurements
    one = replace(one, parameters=(("fault", ACTION),))
    assert exit_code(replace(run, measurements=(one,))) < 4
    without = replace(one, trials=tuple(replace(trial, faults=()) for trial in one.trials))
    assert exit_code(replace(run, measurements=(without,))) == 4


def test_a_recovery_that_is_not_shown_is_exit_code_4_and_is_said() -> None:
    dark = Scripted("dark", 10.0, 1.0)
    few = effect(simulated(dark, 1, 5.0), Injection(ACTION, 10.0, 11.0))
    run = run_of(few)
    assert exit_code(run) == 4
    result_schema.check(data_of(run))
    [summary] = measured(run)["faults_summary"]
    assert (summary["recovered"], summary["not_recovered"], summary["not_shown"]) == (0, 0, 1)
    assert measured(run)["faults"][0]["recovery"] == "not shown"
    for shown in (in_full(run), page_of(run)):
        text = " ".join(shown.split())
        assert "errors and slowness ended after" in text
        assert "recovery not shown (once)" in text
        assert "The requests do not show whether it recovered: 0 of" in text
        assert "of 1 times" not in text
        assert "recovered after 1" not in text
    assert exit_code(run_of(few, few, few, few, few)) < 4  # together they show it


def test_processes_that_end_with_the_fault_are_counted_in_one_line() -> None:
    run = run_of(killed(1.0), killed(2.0), killed(1.0))
    [one] = run.measurements
    died = [
        tuple(EndedProcess("uwsgi", pid, 28.0) for pid in pids)
        for pids in ((11, 12, 13), (21, 22, 23), ())
    ]
    trials = tuple(
        replace(trial, usage=replace(trial.usage, ended=ended))
        for trial, ended in zip(one.trials, died, strict=True)
    )
    run = replace(run, measurements=(replace(one, trials=trials),))
    line = "3 processes of uwsgi ended in 2 of 3 trials with a fault"
    for shown in (summary_of(run), in_full(run), page_of(run)):
        assert line in shown
        assert "pid 11" not in shown


def test_what_was_published_of_another_load_is_not_shown() -> None:
    [measurement] = RUN.measurements
    boots = replace(measurement, scenario="NovaServers.boot_and_delete_server")
    [summary] = measured(replace(RUN, measurements=(boots,)))["faults_summary"]
    assert summary["published"] == {}


def test_the_terminal_shows_them_in_a_table() -> None:
    assert "downtime: 1." in summary_of(RUN)
    shown = in_full(RUN)
    assert f"{ACTION}, 2 times" in shown
    assert "14.7 +- 1.4 s" in shown
    assert "times: connection refused, told after" in shown


def test_workloads_with_the_same_fault_are_its_repeats() -> None:
    [first] = RUN.measurements
    second = replace(first, trials=first.trials[:1])
    assert f"{ACTION}, 3 times" in summary_of(replace(RUN, measurements=(first, second)))


def test_the_page_marks_the_fault_in_each_repeat() -> None:
    page = page_of(RUN, lambda _: next(iter(SAMPLES.values())))
    assert f"<h1>{ACTION.capitalize()}: downtime 1." in page
    assert f"Repeat 2: {ACTION}" in page
    assert "Repeat 2: throughput and backlog" in page
    assert "14.7 +- 1.4 s" in page


def test_a_service_that_does_not_come_back_is_said() -> None:
    due_s = np.arange(0, 20, 0.02)
    outcome = np.where(due_s >= 10, Outcome.REFUSED, Outcome.OK)
    gone = effect(made(due_s, due_s + 0.005, outcome), Injection(ACTION, 10.0))
    shown = " ".join(in_full(run_of(gone)).split())
    assert "It was not as before at the end, 10 s after the fault: 500 of 500" in shown
    assert "before, a rise of 99." in shown
    assert "the service did not recover from the fault" in summary_of(run_of(gone))


def test_effects_are_kept_as_they_are() -> None:
    one = killed(1.0)
    assert codec.loads(FaultEffect, codec.dumps(one)) == one


def test_a_rolling_change_is_said_in_one_sentence() -> None:
    due_s = np.arange(0, 30, 0.02)
    is_slow = (due_s >= 14) & (due_s < 20)
    phases = (FaultPhase("node 1 was out", 10.0, 14.0), FaultPhase("node 2 was out", 14.0, 20.5))
    seen = effect(
        made(due_s, due_s + np.where(is_slow, 0.91, 0.32)),
        Injection("rolling restart of keystone", 10.0, 20.5, phases=phases),
    )
    said = fault.changed(seen)
    assert said == (
        "0 of 1,015 requests failed; p99 rose from 320 to 910 ms for 6 s while node 2 was out."
    )
    before = fault.changed(replace(seen, baseline_p99_s=1.2))  # by one slow request
    assert "p99 was 1200 ms before, 910 ms at most meanwhile" in before
    lost = replace(seen, failed=2, phases=(replace(seen.phases[0], failed=2), seen.phases[1]))
    assert "2 of 1,015 requests failed (2 while node 1 was out)" in fault.changed(lost)
    run = run_of(replace(lost, logged_failures=2))
    for shown in (summary_of(run), in_full(run), page_of(run)):
        text = " ".join(shown.split())
        assert "2 of 1,015 requests failed (2 while node 1 was out)" in text
        assert "node 1 was out" in text
        assert "2 of 200" in text
        assert "own log has 2 failed requests of these loads, Loadstone counted 2." in text
    result_schema.check(data_of(run_of(seen)))
    assert codec.loads(FaultEffect, codec.dumps(lost)) == lost


def test_what_bounds_the_queues_is_a_finding() -> None:
    finding = Finding("overload-queues", "It is slow.", (), Confidence.PROPOSED, "less.")
    run = run_of(replace(killed(1.0), findings=(finding,)))
    assert "overload-queues" in [one["id"] for one in measured(run)["findings"]]
    assert "overload-queues: It is slow. Try: less." in summary_of(run)
    result_schema.check(data_of(run))


def test_a_share_is_rounded_to_none_or_all_only_if_it_is_none_or_all() -> None:
    [one] = RUN.measurements
    [effect] = one.trials[0].faults
    cases = ((1, 9000, "0.01 %"), (8999, 9000, "99.9 %"), (9000, 9000, "100.0 %"))
    for failed, due, share in cases:
        changed = replace(effect, failed=failed, due=due, baseline_failed=0)
        shown = replace(one, trials=(replace(one.trials[0], faults=(changed,)),))
        assert f"failed {share}," in next(fault.headlines(shown))


def test_repeats_that_do_not_differ_show_no_interval_and_no_negative_zero() -> None:
    [one] = RUN.measurements
    [effect] = one.trials[0].faults
    alike = replace(effect, absolute_s=-0.0001, detected_s=0.5)
    shown = replace(one, trials=tuple(replace(t, faults=(alike,)) for t in one.trials))
    [table] = fault.tables(shown)
    rows = {row.cells[0]: row.cells[1:3] for row in table.rows}
    assert rows["degradation"] == ("0.000 s", "")
    assert rows["until haproxy noticed"] == ("0.500 s", "")
