"""A run as a report."""

import re
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from loadstone.diagnosis.finding import Severity
from loadstone.report import figures
from loadstone.report.section import NextStep, Report, Section, Statement, Table
from loadstone.report.sections import fault, tables
from loadstone.report.sections.charts import SamplesOf
from loadstone.report.sections.left import left
from loadstone.report.sections.measurement import Maker
from loadstone.report.sections.overview import overview
from loadstone.result.model import BESIDE, LAB, Measurement, Run
from loadstone.result.outcome import exit_code, summary

# What an iteration of a scenario is, in the plural.
NOUNS = {"token issue": "logins", "token validation": "validations"}
MOST_NAMED = 3  # searches in the headline
_SEARCHES = re.compile(r", \d+ searches$")  # of the title of a combined result
WITH_BUDGET = ("capacity", "demo")  # kinds of runs whose command has --budget for each search
WITH_LAB = ("capacity", "demo", "fault", "task")  # kinds whose lab, if any, is there afterwards
WORDS = (
    (
        "N, the capacity",
        "The highest rate of requests that the service sustains: below it the work that waits "
        "stays bounded, above it the waiting line grows as long as the load lasts.",
    ),
    (
        "Offered and completed",
        "Requests that were due per second, and those that succeeded per second while load was "
        "offered. Requests are sent when they are due, also when earlier ones have not been "
        "answered.",
    ),
    (
        "Latency",
        "From the moment at which a request was due to the end of its answer, so that waiting "
        "which the service caused is counted. p95 is the latency that 95 % of the requests stay "
        "within.",
    ),
    (
        "Backlog",
        "Requests that were due and have not ended. Divided by the rate it is the seconds of work "
        "that stand in line.",
    ),
    (
        "Verdict",
        "Sustained: the backlog did not grow and no more failed than is allowed. Degraded: the "
        "backlog grew, requests failed, or the wanted latency was missed. Invalid: the load "
        "generator was the limit, so the trial says nothing of the service. Undecided: the "
        "figures allow neither. Saturated: no constant rate was offered; what the busy service "
        "completed was counted.",
    ),
    (
        "Interval",
        "Where N lies, as far as this one search can tell. It speaks of this machine at this "
        "time: another hour, or another load on the same host, may move N by more than the "
        "interval.",
    ),
)


def report_of(
    run: Run,
    samples_of: SamplesOf | None = None,
    prefix: str = "",
    store: str = "",
    *,
    is_clean: bool = True,
) -> Report:
    """Return a run as a report; without `samples_of` it has no charts.

    `store` is the option that chooses the run's store in the commands that the report names.
    `is_clean`: whether all that the run created in its cloud is removed.
    """
    is_running = run.status == "running"
    is_clean = is_clean or is_running  # it removes things at its end
    maker = Maker(run.run_id, is_running, samples_of, store, run.kind in WITH_BUDGET)
    sections = tuple(
        maker.section(measurement, f"{prefix}measurement-{number}")
        for number, measurement in enumerate(run.measurements, 1)
    )
    return Report(
        title=_title(run, sections),
        subject=subject(run),
        sections=sections,
        overview=overview(sections),
        anchor=f"{prefix}overview",
        name=f"loadstone {run.kind}",
        id=run.run_id,
        about=_about(run),
        started_at=run.started_at,
        failure=run.failure or "",
        is_clean=is_clean,
        exit_code=exit_code(run, is_clean=is_clean),
        status=run.status,
        statements=tuple(_statements(run, store, is_clean=is_clean)),
        steps=_steps(run, sections),
        settings=_settings(run),
        tables=tuple(fault.over_workloads(run.measurements)),
        page=f"loadstone report {run.run_id}{store}",
        words=WORDS,
        properties=(*run.environment.target, *run.environment.machine),
        data=_data(run),
    )


def subject(run: Run) -> str:
    """Return what was measured in one line: release, deployment, its main settings, cores."""
    target, machine = dict(run.environment.target), dict(run.environment.machine)
    release = _named(target.get("release", "")) or target.get("url", "")
    settings = [
        _workers(target) if name == "workers" else target[name]
        for name in ("workers", "database")
        if name in target
    ]
    where = f"lab {target[LAB]}" if LAB in target else ""
    place = ", ".join(part for part in (release, where) if part)
    listed = f" ({', '.join(settings)})" if settings else ""
    return ", ".join(
        part for part in (place + listed, counted(machine.get("cores"), "core")) if part
    )


def _workers(target: dict[str, str]) -> str:
    workers = counted(target["workers"], "worker")
    return f"{target['nodes']} nodes of {workers}" if "nodes" in target else workers


def counted(count: str | None, noun: str) -> str:
    """Return "2 cores" or "1 core"; empty if the count is not known."""
    return f"{count} {noun}{'' if count == '1' else 's'}" if count else ""


def _named(service: str) -> str:
    return service.replace("keystone", "Keystone", 1) if service[:8] == "keystone" else service


def _about(run: Run) -> str:
    rally = dict(run.environment.target).get("Rally")
    loadstone = dict(run.environment.machine).get("loadstone", version("loadstone"))
    by = f"Rally {rally}" if rally else f"Loadstone {loadstone}"
    when = run.started_at[:16].replace("T", " ")
    return f"Run {run.run_id}, {run.status}, {when} UTC, measured by {by}"


def _title(run: Run, sections: tuple[Section, ...]) -> str:
    service = _named(dict(run.environment.target).get("release", "")) or "The service"
    both = list(zip(run.measurements, sections, strict=True))
    # Of repeated searches the combined result is the answer, once there is one.
    answers = [pair for pair in both if not pair[0].is_repeat] or both
    found = [
        one for one, _ in answers if not one.is_repeat and one.capacity and one.capacity.rate_rps
    ]
    if run.workloads:
        verdict = summary(run) or _all_held(run)
        return f"{run.title or 'A task'}: {verdict}"
    effects = [line for one in run.measurements for line in fault.headlines(one)]
    if effects:
        return figures.begun("; ".join(effects[:MOST_NAMED]))
    if found and len(found) == len(answers) and len(found) <= MOST_NAMED:
        return f"{service} sustains {_listed([_many(one) for one in found])} a second"
    if sections:
        said = (f"{one.title}: {one.answer.line}" for _, one in answers[:MOST_NAMED])
        return figures.begun("; ".join(said))
    return f"{service}: nothing was measured"


def _many(measurement: Measurement) -> str:
    number = figures.n(measurement.capacity)
    title = _SEARCHES.sub("", measurement.title)
    return f"{number} {NOUNS.get(title, f'x {title}')}"


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _all_held(run: Run) -> str:
    count = len(run.workloads)
    if not any(one.checks for one in run.workloads):
        return figures.counted(count, "workload")
    return "its SLA held" if count == 1 else f"the SLAs of {count} workloads held"


def _statements(run: Run, store: str, *, is_clean: bool) -> list[Statement]:
    found = []
    if not is_clean:
        found.append(left(run.run_id, store))
    if run.status not in ("finished", "running") or run.failure:
        how = "was interrupted" if run.status == "interrupted" else run.status
        why = f": {run.failure.rstrip('.')}" if run.failure else ""
        text = f"This run {how}{why}. What it measured until then is shown."
        found.append(Statement(text, Severity.CRITICAL))
    if (others := dict(run.environment.target).get(BESIDE)) is not None:
        found.append(Statement(f"Measured at the same time as {others}.", Severity.WARNING))
    return found


def _steps(run: Run, sections: tuple[Section, ...]) -> tuple[NextStep, ...]:
    """Return critical findings of the audit first, then what the bottleneck asks for."""
    audit = [
        NextStep(
            one.advice,
            Severity(one.severity) if one.severity in set(Severity) else Severity.INFO,
            command=_proof(run, one.rule) if one.is_provable else "",
            rule=one.rule,
            detail=one.sentence,
        )
        for one in run.environment.audit
    ]
    first = [one for one in audit if one.severity is Severity.CRITICAL]
    named = [one for section in sections for one in section.steps]
    rest = [one for one in audit if one.severity is Severity.WARNING]
    # Several measurements may lead to the same advice, each with figures of its own.
    once: dict[tuple[str, ...], NextStep] = {}
    for one in (*first, *named, *rest):
        once.setdefault((one.text, one.worth, one.command, one.rule), one)
    return tuple(once.values())


def _proof(run: Run, rule: str) -> str:
    """Return the command that measures what the fix of a rule brings, on the run's own lab."""
    lab = dict(run.environment.target).get(LAB) if run.kind in WITH_LAB else None
    return f"loadstone audit prove {rule} --lab {lab or 'NAME'}"


def _settings(run: Run) -> tuple[Table, ...]:
    environment = run.environment
    loads = [
        (f"The load: {one.title}", one.parameters) for one in run.measurements if one.parameters
    ]
    every = (
        ("The service", environment.target),
        ("The machine", environment.machine),
        *dict.fromkeys(loads),
        ("Settings that the audit read", environment.facts),
        ("Command", (("command line", run.command),)),
    )
    return tuple(tables.pairs(title, rows) for title, rows in every if rows)


def _data(run: Run) -> dict[str, Any]:
    environment = run.environment
    return {
        "document": "run",
        "run_id": run.run_id,
        "kind": run.kind,
        "title": run.title,
        "status": run.status,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "command": run.command,
        "failure": run.failure,
        "environment": {
            "machine": dict(environment.machine),
            "target": dict(environment.target),
            "facts": dict(environment.facts),
            "audit": [asdict(one) for one in environment.audit],
        },
    }
