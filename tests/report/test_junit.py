from dataclasses import replace
from xml.etree import ElementTree as Xml

from made_runs import runs
from realistic import keystone

from loadstone.report import junit
from loadstone.search.model import Capacity

RESULT, _ = keystone()


def suite(result=RESULT) -> Xml.Element:
    return Xml.fromstring(junit.render(result)).find("testsuite")


def test_each_workload_is_a_case_and_a_degraded_trial_is_no_failure():
    cases = suite().findall("testcase")
    assert [case.get("name") for case in cases] == [
        "capacity of token issue",
        "capacity of token validation",
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


def test_a_search_without_a_number_is_an_error_that_says_why():
    finding = replace(
        RESULT.measurements[0],
        capacity=Capacity(None, 6.9, None, 0.0, ("the load generator was the limit",)),
        trials=RESULT.measurements[0].trials[3:4],
    )
    found = suite(replace(RESULT, measurements=(finding,)))
    assert found.get("errors") == "1"
    message = found.find("testcase/error").get("message")
    assert message.startswith("the load generator was the limit; trial 4: sends were late")


def test_n_below_the_rate_that_was_asked_for_is_a_failure_and_doubt_an_error():
    asked = [replace(RESULT.measurements[0], least_rps=rate) for rate in (7.0, 7.2, 7.3)]
    found = [suite(replace(RESULT, measurements=(one,))) for one in asked]
    assert [(one.get("failures"), one.get("errors")) for one in found] == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
    ]
    message = found[2].find("testcase/failure").get("message")
    assert message.startswith("the service does not bear the 7.3/s of --fail-below")


def test_a_workload_whose_rules_did_not_hold_is_a_failure_that_names_them():
    task = runs()["task"]
    missed = [row.criterion for row in task.measurements[0].checks if not row.success]
    found = suite(task)
    assert found.get("failures") == "1"
    failure = found.find("testcase/failure")
    assert (failure.get("type"), failure.get("message")) == ("sla", ", ".join(missed))
    assert all(name in failure.text for name in missed)


def test_a_run_that_failed_before_any_finding_is_an_error():
    found = suite(replace(RESULT, measurements=(), status="failed", failure="Keystone died"))
    assert found.find("testcase/error").get("message") == "Keystone died"
    assert found.get("tests") == found.get("errors") == "1"


def test_what_xml_cannot_hold_does_not_break_the_document():
    odd = 'a\x00b\x1b[31m </testcase> & "\ud800'
    findings = tuple(replace(f, title=odd, notes=(odd,)) for f in RESULT.measurements)
    found = suite(replace(RESULT, failure=odd, measurements=findings))
    assert 'a\\x00b\\x1b[31m </testcase> & "?' in found.find("testcase").get("name")
