from dataclasses import replace
from xml.etree import ElementTree as Xml

import made_runs
from made_workloads import workload
from realistic import keystone
from rendered import junit_of

from loadstone.analysis.model import Cause, TrialState, Verdict
from loadstone.report import junit
from loadstone.report.sections.run import report_of
from loadstone.result.outcome import exit_code
from loadstone.result.task_workload import TaskWorkload
from loadstone.search.model import Capacity

RESULT, SAMPLES = keystone()


def suite(result=RESULT) -> Xml.Element:
    return Xml.fromstring(junit_of(result)).find("testsuite")


def test_each_workload_is_a_case_and_a_degraded_trial_is_no_failure():
    cases = suite().findall("testcase")
    assert [case.get("name") for case in cases] == [
        "token issue",
        "token validation",
    ]
    assert (suite().get("tests"), suite().get("failures"), suite().get("errors")) == ("2", "0", "0")
    properties = {p.get("name"): p.get("value") for p in cases[0].iter("property")}
    assert properties == {
        "rate_rps": "7.19",
        "low_rps": "7.11",
        "high_rps": "7.27",
        "confidence": "0.95",
    }
    assert "the CPU is the limit" in cases[0].find("system-out").text


def test_counts_are_whole():
    one = workload(SAMPLES[0, 3])
    [trial] = one.trials
    total = replace(trial.stats.total, count=1_234_567)
    many = replace(trial, stats=replace(trial.stats, total=total))
    found = suite(replace(RESULT, measurements=(replace(one, trials=(many,)),))).iter("property")
    assert ("iterations", "1234567") in {(p.get("name"), p.get("value")) for p in found}


def test_a_search_without_a_number_is_an_error_that_says_why():
    finding = replace(
        RESULT.measurements[0],
        capacity=Capacity(None, 6.9, None, 0.0, ("the load generator was the limit",)),
        trials=RESULT.measurements[0].trials[3:4],
    )
    found = suite(replace(RESULT, measurements=(finding,)))
    assert found.get("errors") == "1"
    error = found.find("testcase/error")
    assert (error.get("type"), error.get("message")) == (
        "exit code 4",
        "the load generator was the limit",
    )
    assert "sends were late" in found.find("testcase/system-out").text


def test_n_below_the_rate_that_was_asked_for_is_a_failure_and_doubt_an_error():
    asked = [replace(RESULT.measurements[0], least_rps=rate) for rate in (7.0, 7.2, 7.3)]
    found = [suite(replace(RESULT, measurements=(one,))) for one in asked]
    assert [(one.get("failures"), one.get("errors")) for one in found] == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
    ]
    message = found[2].find("testcase/failure").get("message")
    assert message == "gate missed: N 7.19 (7.11 to 7.27), 7.3 wanted (--fail-below)"


def test_a_workload_whose_rules_did_not_hold_is_a_failure_that_names_them():
    task = made_runs.runs()["task"]
    missed = [row.criterion for row in task.measurements[0].checks if not row.success]
    found = suite(task)
    assert found.get("failures") == "1"
    failure = found.find("testcase/failure")
    assert failure.get("type") == "exit code 1"
    assert all(name in failure.get("message") for name in missed)


def test_a_run_that_failed_before_any_finding_is_an_error():
    found = suite(replace(RESULT, measurements=(), status="failed", failure="Keystone died"))
    assert found.find("testcase/error").get("message") == "Keystone died"
    assert found.get("tests") == found.get("errors") == "1"


def test_a_workload_that_was_cut_off_or_never_began_is_an_error() -> None:
    task = made_runs.runs()["task"]
    cut = replace(task.measurements[0], status="interrupted")
    later = replace(cut, trials=(), status="running")
    found = suite(replace(task, status="interrupted", measurements=(cut, later)))
    errors = [case.find("error").get("message") for case in found.findall("testcase")]
    assert errors == ["it did not end", "it did not end", "the run is interrupted"]


def test_what_a_run_left_in_its_cloud_is_a_failure() -> None:
    found = Xml.fromstring(junit.render(report_of(RESULT, is_clean=False))).find("testsuite")
    assert (found.get("failures"), found.get("errors")) == ("1", "0")
    assert "is left" in found.find("testcase/failure").get("message")


def test_what_xml_cannot_hold_does_not_break_the_document():
    odd = 'a\x00b\x1b[31m </testcase> & "\ud800'
    findings = tuple(replace(f, title=odd, notes=(odd,)) for f in RESULT.measurements)
    found = suite(replace(RESULT, failure=odd, measurements=findings))
    assert 'a\\x00b\\x1b[31m </testcase> & "?' in found.find("testcase").get("name")


def test_whatever_ends_with_another_exit_code_than_0_is_not_green():
    made = {name: run for name, run in made_runs.runs().items() if run.kind != "fault"}
    late = replace(made_runs.runs()["generator"].measurements[0].trials[0].health, limits=("late",))
    paced = workload(
        SAMPLES[0, 3],
        given=TaskWorkload(runner={"rps": {"rps": 5, "times": 9}}),
        of_trial={"health": late},
    )
    issue = RESULT.measurements[0]
    invalid = Verdict(TrialState.INVALID, ("sends were late",), Cause.GENERATOR)
    fixed = replace(
        issue,
        policy="fixed",
        capacity=None,
        trials=(replace(issue.trials[0], verdict=invalid),),
    )
    made["a requested rate"] = replace(RESULT, kind="task", measurements=(paced,))
    made["a fixed load"] = replace(RESULT, kind="fault", measurements=(fixed,))
    made["no figures of a fault"] = replace(
        RESULT,
        kind="fault",
        measurements=(
            replace(
                issue, policy="fixed", trials=issue.trials[:1], parameters=(("fault", "kill"),)
            ),
        ),
    )
    made["no prediction"] = replace(
        RESULT, measurements=(replace(issue, policy="prediction", trials=()),)
    )
    for name, run in made.items():
        found = suite(run)
        code = exit_code(run)
        assert (found.get("failures"), found.get("errors")) != ("0", "0") or code == 0, name
        if code > 1:
            assert found.get("errors") != "0", name
    assert suite(made["a requested rate"]).find("testcase/error").get("message") == (
        "the requested rate was not kept: late"
    )
