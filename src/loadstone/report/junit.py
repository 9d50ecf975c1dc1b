"""A result as JUnit XML, which CI servers show: one test case per workload."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as Xml

from loadstone.analysis.performance import Failure
from loadstone.report import figures, words
from loadstone.report.generator import generator_of
from loadstone.report.steps import load_of
from loadstone.result import Finding, Performance, Result

# What XML 1.0 cannot hold, not even escaped.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(result: Result) -> str:
    """Give the document; a workload without a capacity is an error, for it was not measured.

    A degraded trial is no failure: a search looks for the rate at which the service gives way.
    """
    cases = [_case(finding, result) for finding in result.findings]
    cases += map(_workload, result.performances, _names(result.performances))
    if not cases or result.failure:
        cases.append(_run(result))
    errors = sum(case.find("error") is not None for case in cases)
    failures = sum(case.find("failure") is not None for case in cases)
    took_s = sum(finding.wall_s for finding in result.findings)
    took_s += sum(performance.full_s for performance in result.performances)
    suite = Xml.Element(
        "testsuite",
        name=_clean(f"loadstone {result.kind}"),
        id=_clean(result.run_id),
        timestamp=_clean(result.started_at[:19]),
        tests=str(len(cases)),
        failures=str(failures),
        errors=str(errors),
        skipped="0",
        time=f"{took_s:.3f}",
    )
    _properties(suite, (*result.environment.target, *result.environment.machine))
    suite.extend(cases)
    root = Xml.Element("testsuites", tests=str(len(cases)))
    root.attrib |= {"failures": str(failures), "errors": str(errors)}
    root.append(suite)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(finding: Finding, result: Result) -> Xml.Element:
    case = Xml.Element(
        "testcase",
        classname=_clean(f"loadstone.{finding.scenario}"),
        name=_clean(f"capacity of {finding.title}" if finding.is_search else finding.title),
        time=f"{finding.wall_s:.3f}",
    )
    capacity = finding.capacity
    if capacity is not None:
        known = (
            ("rate_rps", capacity.rate_rps),
            ("low_rps", capacity.low_rps),
            ("high_rps", capacity.high_rps),
            ("confidence", capacity.confidence),
        )
        _properties(case, tuple((name, f"{v:.6g}") for name, v in known if v is not None))
    is_missing = capacity is None or capacity.rate_rps is None
    if is_missing and (finding.is_search or not finding.trials):
        said = [result.failure] if result.failure else []
        said += capacity.words if capacity else ()
        generator = generator_of(finding)
        said += generator.reasons if generator and not generator.is_valid else ()
        message = "; ".join(said) or f"the run is {result.status}"
        Xml.SubElement(case, "error", type=figures.NOT_FOUND, message=_clean(message))
    Xml.SubElement(case, "system-out").text = _clean("\n".join(words.of(finding)))
    return case


def _names(performances: Sequence[Performance]) -> Iterator[str]:
    """Give each workload a name of its own: of two alike, GitLab would show the first alone."""
    seen: Counter[tuple[str, str]] = Counter()
    for one in performances:
        name = f"{one.subtask}, {load_of(one)}" if one.is_step else one.subtask
        seen[one.scenario, name] += 1
        number = seen[one.scenario, name]
        yield name if number == 1 else f"{name} ({number})"


def _workload(performance: Performance, name: str) -> Xml.Element:
    """Give a workload of a task: a failure where its SLA does not hold, as in Rally."""
    case = Xml.Element(
        "testcase",
        classname=_clean(f"loadstone.{performance.scenario}"),
        name=_clean(name),
        time=f"{performance.full_s:.3f}",
    )
    if performance.failure or performance.status in ("running", "interrupted"):
        message = performance.failure or f"the workload is {performance.status}"
        Xml.SubElement(case, "error", type=_clean(performance.status), message=_clean(message))
    elif not performance.pass_sla:
        missed = [row for row in performance.sla if not row.success]
        details = "\n".join(f"{row.criterion}: {row.detail}" for row in missed)
        kinds = ", ".join(row.criterion for row in missed)
        Xml.SubElement(case, "failure", type="sla", message=_clean(kinds)).text = _clean(details)
    said = "\n".join(failure.message for failure in _failures(performance))
    if said:
        Xml.SubElement(case, "system-out").text = _clean(said)
    return case


def _failures(performance: Performance) -> tuple[Failure, ...]:
    return performance.showing.failures if performance.showing else ()


def _run(result: Result) -> Xml.Element:
    case = Xml.Element("testcase", classname="loadstone", name="run", time="0")
    if result.failure or result.status != "finished":
        message = result.failure or f"the run is {result.status}"
        Xml.SubElement(case, "error", type=_clean(result.status), message=_clean(message))
    return case


def _properties(parent: Xml.Element, pairs: tuple[tuple[str, str], ...]) -> None:
    if not pairs:
        return
    properties = Xml.SubElement(parent, "properties")
    for name, value in pairs:
        Xml.SubElement(properties, "property", name=_clean(name), value=_clean(value))


def _clean(text: str) -> str:
    return FORBIDDEN.sub("?", text)
