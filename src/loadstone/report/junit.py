"""A result as JUnit XML, which CI servers show: one test case per workload."""

import math
import re
from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from loadstone.analysis.model import TrialState
from loadstone.report import figures, names, words
from loadstone.report.generator import generator_of
from loadstone.report.outcome import shortfalls
from loadstone.result.model import Measurement, Run
from loadstone.search.floor import FloorOutcome, floor_message, judge_floor
from loadstone.system.printable import visible

# Characters that XML 1.0 cannot hold, not even escaped.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    """Return the document. A search without a capacity is an error: nothing was measured.

    A degraded trial of a search is no failure, as a search looks for the rate at which the service
    degrades. An N below the rate of --fail-below is a failure. Whatever else does not end with exit
    code 0 is a failure if the service fell short, and an error if nothing valid was measured.
    """
    each = [one for measurement in run.measurements for one in measurement.each]
    cases = [_case(one, name, run) for one, name in zip(each, names.of_each(each), strict=True)]
    if not cases or run.failure:
        cases.append(_run(run))
    errors = sum(case.find("error") is not None for case in cases)
    failures = sum(case.find("failure") is not None for case in cases)
    took_s = sum(measurement.wall_s for measurement in run.measurements)
    suite = Xml.Element(
        "testsuite",
        name=clean(f"loadstone {run.kind}"),
        id=clean(run.run_id),
        timestamp=clean(run.started_at[:19]),
        tests=str(len(cases)),
        failures=str(failures),
        errors=str(errors),
        skipped="0",
        time=f"{took_s:.3f}",
    )
    _properties(suite, (*run.environment.target, *run.environment.machine))
    suite.extend(cases)
    root = Xml.Element("testsuites", tests=str(len(cases)))
    root.attrib |= {"failures": str(failures), "errors": str(errors)}
    root.append(suite)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(measurement: Measurement, name: str, run: Run) -> Xml.Element:
    is_search = measurement.policy == "search"
    case = Xml.Element(
        "testcase",
        classname=clean(f"loadstone.{measurement.scenario}"),
        name=clean(f"capacity of {name}" if is_search else name),
        time=f"{measurement.wall_s:.3f}",
    )
    known = _capacity(measurement) if is_search else _figures(measurement)
    _properties(case, tuple((name, f"{v:.6g}") for name, v in known if math.isfinite(v)))
    if why := _missing(measurement, run):
        kind = figures.NOT_FOUND if is_search else measurement.status
        Xml.SubElement(case, "error", type=clean(kind), message=clean(why))
    elif is_search:
        _add_floor(case, measurement)
    else:
        _add_failure(case, measurement)
    if case.find("error") is None and case.find("failure") is None:
        _add_shortfall(case, measurement)
    output = "\n".join(_output(measurement))
    if output:
        Xml.SubElement(case, "system-out").text = clean(output)
    return case


def _missing(measurement: Measurement, run: Run) -> str | None:
    """Return why the case has no result, or None if it has one."""
    if measurement.spec:
        is_over = measurement.status not in ("running", "interrupted")
        return measurement.failure or (None if is_over else f"the workload is {measurement.status}")
    capacity, is_search = measurement.capacity, measurement.policy == "search"
    if (capacity and capacity.rate_rps is not None) or (not is_search and measurement.trials):
        return None
    generator = generator_of(measurement)
    reasons = [run.failure] if run.failure else []
    reasons += capacity.words if capacity else ()
    reasons += generator.reasons if generator and not generator.is_valid else ()
    return "; ".join(reasons) or f"the run is {run.status}"


def _add_shortfall(case: Xml.Element, measurement: Measurement) -> None:
    """Add why the measurement does not end with exit code 0."""
    worst = max(shortfalls(measurement), key=lambda one: one.code, default=None)
    if worst is not None:
        kind, message = "failure" if worst.is_failure else "error", clean(worst.reason)
        Xml.SubElement(case, kind, type=f"exit code {worst.code}", message=message)


def _add_floor(case: Xml.Element, measurement: Measurement) -> None:
    """Add that N is below the rate of --fail-below, or that this is undecided."""
    least = measurement.least_rps
    if least is None:
        return
    kinds = {FloorOutcome.MISSED: "failure", FloorOutcome.UNDECIDED: "error"}
    if kind := kinds.get(judge_floor(measurement.capacity, least)):
        message = clean(floor_message(measurement.capacity, least))
        Xml.SubElement(case, kind, type="floor", message=message)


def _add_failure(case: Xml.Element, measurement: Measurement) -> None:
    """Add the missed SLA of a task's workload, as Rally does, or the degraded trial."""
    missed = [row for row in measurement.checks if not row.success]
    if missed:
        kinds = ", ".join(row.criterion for row in missed)
        details = "\n".join(f"{row.criterion}: {row.detail}" for row in missed)
        Xml.SubElement(case, "failure", type="sla", message=clean(kinds)).text = clean(details)
        return
    trial = measurement.trial
    if trial is not None and trial.verdict.state is TrialState.DEGRADED:
        message = clean("; ".join(trial.verdict.reasons))
        Xml.SubElement(case, "failure", type=TrialState.DEGRADED.value, message=message)


def _capacity(measurement: Measurement) -> Iterator[tuple[str, float]]:
    capacity = measurement.capacity
    for name in ("rate_rps", "low_rps", "high_rps", "confidence") if capacity else ():
        value = getattr(capacity, name)
        if value is not None:
            yield name, value


def _figures(measurement: Measurement) -> Iterator[tuple[str, float]]:
    stats = measurement.stats
    if stats is not None:
        yield "iterations", stats.total.count
        yield "failed", stats.failed
        yield "throughput_rps", stats.throughput_rps
        yield "p50_s", stats.total.median_s
        yield "p95_s", stats.total.p95_s
        yield "p99_s", stats.total.p99_s


def _output(measurement: Measurement) -> tuple[str, ...]:
    if not measurement.spec:
        return words.of(measurement)
    failures = measurement.stats.failures if measurement.stats else ()
    return tuple(failure.message for failure in failures)


def _run(run: Run) -> Xml.Element:
    case = Xml.Element("testcase", classname="loadstone", name="run", time="0")
    if run.failure or run.status != "finished":
        message = run.failure or f"the run is {run.status}"
        Xml.SubElement(case, "error", type=clean(run.status), message=clean(message))
    return case


def _properties(parent: Xml.Element, pairs: tuple[tuple[str, str], ...]) -> None:
    if not pairs:
        return
    properties = Xml.SubElement(parent, "properties")
    for name, value in pairs:
        Xml.SubElement(properties, "property", name=clean(name), value=clean(value))


def clean(text: str) -> str:
    """Make control characters visible; replace what else XML cannot hold."""
    return FORBIDDEN.sub("?", visible(text))
