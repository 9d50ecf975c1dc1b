"""A report as JUnit XML, which CI servers show: one test case for each measurement."""

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from loadstone.errors import FELL_SHORT
from loadstone.report import names
from loadstone.report.section import Report, Section
from loadstone.system.printable import visible

# Characters that XML 1.0 cannot hold, not even escaped.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Return the document; each step of a workload is a case of its own.

    What does not end with exit code 0 is a failure if the service fell short, and an error if
    nothing valid was measured. A run that ended early adds a case with an error; what a run left
    in its cloud adds one with a failure.
    """
    leaves = [leaf for section in report.sections for leaf in section.leaves]
    named = names.unique((one.scenario, one.name or one.title) for one in leaves)
    cases = [_case(one, name) for one, name in zip(leaves, named, strict=True)]
    if not cases or report.failure or report.status != "finished" or not report.is_clean:
        cases.append(_run(report))
    errors = sum(case.find("error") is not None for case in cases)
    failures = sum(case.find("failure") is not None for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors)}
    about = {
        "name": clean(report.name),
        "id": clean(report.id),
        "timestamp": clean(report.started_at[:19]),
        "skipped": "0",
        "time": f"{sum(one.took_s for one in report.sections):.3f}",
    }
    suite = Xml.Element("testsuite", about | counts)
    _properties(suite, report.properties)
    suite.extend(cases)
    root = Xml.Element("testsuites", counts)
    root.append(suite)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(section: Section, name: str) -> Xml.Element:
    case = Xml.Element(
        "testcase",
        classname=clean(f"loadstone.{section.scenario}".rstrip(".")),
        name=clean(name),
        time=f"{section.took_s:.3f}",
    )
    known = [
        (one.name, str(one.value) if isinstance(one.value, int) else f"{one.value:.6g}")
        for one in section.figures
        if one.value is not None and math.isfinite(one.value)
    ]
    _properties(case, known)
    certainty = section.certainty
    if certainty.exit_code:
        kind = "failure" if certainty.exit_code == FELL_SHORT else "error"
        message = clean(certainty.reason)
        type_ = f"exit code {certainty.exit_code}"
        Xml.SubElement(case, kind, type=type_, message=message).text = clean(certainty.line)
    facts = (f"{one.label}: {one.text}" for one in section.facts if one.is_line)
    said = (one.text for one in section.statements)
    lines = (section.answer.sentence, *facts, *said)
    Xml.SubElement(case, "system-out").text = clean("\n".join(lines))
    return case


def _run(report: Report) -> Xml.Element:
    case = Xml.Element("testcase", classname="loadstone", name="run", time="0")
    if report.failure or report.status != "finished":
        message = report.failure or f"the run is {report.status}"
        Xml.SubElement(case, "error", type=clean(report.status), message=clean(message))
    elif not report.is_clean:
        message = "something that the run created in its cloud is left"
        Xml.SubElement(case, "failure", type=f"exit code {FELL_SHORT}", message=message)
    return case


def _properties(parent: Xml.Element, pairs: Sequence[tuple[str, str]]) -> None:
    if not pairs:
        return
    properties = Xml.SubElement(parent, "properties")
    for name, value in pairs:
        Xml.SubElement(properties, "property", name=clean(name), value=clean(value))


def clean(text: str) -> str:
    """Make control characters visible; replace what else XML cannot hold."""
    return FORBIDDEN.sub("?", visible(text))
