"""An audit as JUnit XML: a suite per host, a test case per rule."""

from xml.etree import ElementTree as Xml

from loadstone.audit.evaluate import Audit, RuleResult, RuleState
from loadstone.report.junit import clean


def render(audit: Audit) -> str:
    """Return the document; unknown results are errors, waived ones are skipped."""
    suites = Xml.Element("testsuites", name="loadstone audit")
    for host in audit.hosts:
        suites.append(_suite(host.host, audit.of(host)))
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suites, encoding="unicode")


def _suite(host: str, results: tuple[RuleResult, ...]) -> Xml.Element:
    cases = [_case(result) for result in results]
    suite = Xml.Element(
        "testsuite",
        name=clean(host),
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        time="0",
    )
    suite.extend(cases)
    return suite


def _case(result: RuleResult) -> Xml.Element:
    rule = result.rule
    name = clean(f"{rule.id} {rule.title}")
    case = Xml.Element("testcase", classname=clean(result.host), name=name, time="0")
    message = clean(result.message)
    match result.state:
        case RuleState.FAIL | RuleState.WARN:
            kind = result.severity.value
            Xml.SubElement(case, "failure", type=kind, message=message).text = clean(rule.fix.text)
        case RuleState.UNKNOWN:
            Xml.SubElement(case, "error", type="unknown", message=message)
        case RuleState.SKIP | RuleState.WAIVED:
            Xml.SubElement(case, "skipped", message=message)
        case RuleState.PASS:
            pass
    return case
