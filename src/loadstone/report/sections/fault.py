"""Effects of faults: the answer, tables, sentences, data."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from loadstone.analysis.fault import FaultEffect, FaultSummary, UnmeasuredFault, recoveries
from loadstone.analysis.fault_effect import summarize
from loadstone.analysis.interval import Interval
from loadstone.analysis.recovery import Recovery, Remainder, latency_ratio, pooled, share_rise
from loadstone.analysis.stats import WORDS
from loadstone.diagnosis.finding import Finding
from loadstone.engine.outcome import Outcome
from loadstone.report import figures
from loadstone.report.section import Answer, Fact, Row, Table
from loadstone.report.sections.tables import columns
from loadstone.result.model import Measurement

# Scenario -> sentence -> figure -> mean and its published error: OpenStack's
# performance-docs, reliability testing, version 2 (Fuel, 2016/17), closed loops. Keystone's are of
# five runs, Neutron's of three, Nova's of one. A fault that had no effect is not listed.
PUBLISHED = {
    "Authenticate.keystone": {
        "kill keystone service on one node": {
            "downtime_s": (0.038, 0.081),
            "plan_mttr_s": (2.28, 0.23),
            "absolute_s": (1.21, 0.35),
            "relative": (9.1, 2.3),
        },
        "restart keystone service on one node": {
            "downtime_s": (1.07, 0.76),
            "plan_mttr_s": (5.44, 0.47),
            "absolute_s": (0.41, 0.22),
            "relative": (4.7, 2.0),
        },
        "restart memcached service on one node": {
            "plan_mttr_s": (0.458, 0.068),
            "absolute_s": (0.057, 0.034),
            "relative": (1.46, 0.27),
        },
        "kill mysql service on one node": {"downtime_s": (14.7, 1.4)},
    },
    "NovaServers.boot_and_delete_server": {
        "disconnect management network on one node with nova-scheduler service": {
            "downtime_s": (358.0, 2.7),
            "plan_mttr_s": (149.0, 2.1),
            "absolute_s": (24.0, 17.0),
            "relative": (5.7, 3.4),
        },
        "reboot one node with rabbitmq service": {
            "downtime_s": (8.7, 1.6),
            "plan_mttr_s": (286.89, 0.87),
            "absolute_s": (14.7, 4.7),
            "relative": (3.85, 0.91),
        },
    },
    "NeutronNetworks.create_and_list_networks": {
        "kill mysql service on one node": {
            "plan_mttr_s": (7.73, 0.72),
            "absolute_s": (1.4, 1.1),
            "relative": (3.8, 2.3),
        },
    },
}
LEAST_SHARE = 0.0005  # a smaller share would be 0.0 %
# haproxy closes a keep-alive connection silently when its server does; clients should retry.
CLOSED = WORDS[Outcome.CLOSED_EARLY]
GIVEN_UP = (WORDS[Outcome.FIRST_BYTE_TIMEOUT], WORDS[Outcome.BODY_TIMEOUT])
ENDED_AFTER = "errors and slowness ended after"  # which is no recovery where that is not shown
DOWNTIME = "failing_s"  # without errors that were there before
# Figure, label, unit.
ROWS = (
    ("downtime_s", "downtime (first to last error)", "s"),
    (DOWNTIME, "downtime (more failed than before)", "s"),
    ("unavailable_s", "half or more failed", "s"),
    ("failed", "failed requests", ""),
    ("failed_share", "failed share", "%"),
    ("detected_s", "until haproxy noticed", "s"),
    ("mttr_s", "until recovered", "s"),
    ("plan_mttr_s", "MTTR by the test plan", "s"),
    ("absolute_s", "degradation", "s"),
    ("relative", "degradation, ratio", ""),
    ("backlog", "backlog at most", ""),
    ("drained_s", "backlog drained in", "s"),
    ("goodput_rps", "goodput during the fault", "/s"),
)


def summaries(measurement: Measurement) -> tuple[FaultSummary, ...]:
    """Return each action's figures over its repeats."""
    return summarize(effects(measurement), _unmeasured(measurement))


def effects(measurement: Measurement) -> tuple[FaultEffect, ...]:
    """Return the effects of the faults in all trials."""
    return tuple(one for trial in measurement.trials for one in trial.faults)


def _unmeasured(measurement: Measurement) -> Iterator[UnmeasuredFault]:
    return (one for trial in measurement.trials for one in trial.unmeasured_faults)


def as_data(measurement: Measurement) -> list[dict[str, Any]]:
    """Return each effect as JSON-compatible data."""
    return [
        _effect(one) | {"repeat": trial.number}
        for trial in measurement.trials
        for one in trial.faults
    ]


def unmeasured_as_data(measurement: Measurement) -> list[dict[str, Any]]:
    """Return each fault without figures, and why, as JSON-compatible data."""
    return [
        asdict(one) | {"repeat": trial.number}
        for trial in measurement.trials
        for one in trial.unmeasured_faults
    ]


def summary_as_data(measurement: Measurement) -> list[dict[str, Any]]:
    """Return each action's figures over its repeats as JSON-compatible data."""
    return [_summary(one, measurement.scenario) for one in summaries(measurement)]


def findings(measurement: Measurement) -> tuple[Finding, ...]:
    """Return the findings about overload, without duplicates."""
    by_id = {found.id: found for one in effects(measurement) for found in one.findings}
    return tuple(by_id.values())


def _effect(effect: FaultEffect) -> dict[str, Any]:
    data = asdict(effect) | {
        "failed_share": effect.failed_share,
        "baseline_failed_share": effect.baseline_failed_share,
    }
    del data["findings"]  # listed with the measurement's other findings
    del data["remainder"]
    rest, ratio = effect.remainder, latency_ratio(effect.remainder)
    return data | {
        "end_due": rest.after_due,
        "end_failed": rest.after_failed,
        "end_failed_share_rise": asdict(share_rise(rest)),
        "end_latency_ratio": None if ratio is None else asdict(ratio),
    }


def _published(scenario: str, action: str) -> dict[str, tuple[float, float]]:
    """Return the published figures of a fault under the same load."""
    return PUBLISHED.get(scenario, {}).get(action, {})


def _summary(summary: FaultSummary, scenario: str) -> dict[str, Any]:
    return {
        "action": summary.action,
        "repeats": summary.repeats,
        "unmeasured": summary.unmeasured,
        "recovered": summary.recovered,
        "not_recovered": summary.not_recovered,
        "not_shown": summary.not_shown,
        "published": {
            name: {"mean": mean, "plus_minus": error}
            for name, (mean, error) in _published(scenario, summary.action).items()
        },
        **{name: asdict(one) for name, one in summary.figures},
    }


def answer(measurement: Measurement) -> Answer | None:
    """Return the downtime of the first action; None if no fault has figures."""
    found = summaries(measurement)
    if not found:
        return None
    down = dict(found[0].figures)[DOWNTIME]
    said = "; ".join(headlines(measurement))
    low, high = down.low, down.high
    interval = _interval(down, "s") if low is not None else ""
    text = _value(down.mean, "s")
    return Answer("downtime", text.removesuffix(" s"), "s", said, down.mean, low, high, interval)


def facts(measurement: Measurement) -> Iterator[Fact]:
    """Yield what each action did to clients."""
    found = summaries(measurement)
    for rank, summary in enumerate(found, 2):
        yield Fact("fault" if len(found) > 1 else "did", _headline(summary), rank=rank)
        yield from _details(_repeats(measurement, summary), rank)
    for summary in found[:1]:
        times = summary.figure("mttr_s")
        is_known = times is not None and not summary.not_shown
        after = _of_all(times, "s", summary) if times and is_known else figures.MISSING
        yield Fact("recovered after", after, is_line=False, is_column=True)


def _repeats(measurement: Measurement, summary: FaultSummary) -> list[FaultEffect]:
    return [one for one in effects(measurement) if one.action == summary.action]


def _details(repeats: list[FaultEffect], rank: int) -> Iterator[Fact]:
    """Yield what a rolling change cost, what haproxy logged, and the findings of an overload."""
    for one in repeats:
        if one.phases:
            yield Fact("requests", changed(one), rank=rank)
    if logged := _logged(repeats):
        yield Fact("log", logged, rank=rank)
    which = f"In one of {len(repeats)} loads: " if len(repeats) > 1 else ""
    for finding in {one.id: one for effect in repeats for one in effect.findings}.values():
        text = f"{finding.id}: {which}{finding.sentence} Try: {finding.advice}"
        yield Fact("finding", text, rank=rank)


def headlines(measurement: Measurement) -> Iterator[str]:
    """Yield what each action did to clients, in one line: downtime, failures, recovery."""
    return map(_headline, summaries(measurement))


def _headline(summary: FaultSummary) -> str:
    earlier = summary.figure("baseline_failed_share")
    before = f" ({_value(earlier.mean, '%')} before)" if earlier and earlier.mean else ""
    parts = [
        f"{label} {_of_all(one, unit, summary)}{before if name == 'failed_share' else ''}"
        for name, label, unit in (
            (DOWNTIME, "downtime", "s"),
            ("failed_share", "failed", "%"),
            ("mttr_s", ENDED_AFTER if summary.not_shown else "recovered after", "s"),
        )
        if (one := summary.figure(name)) is not None
    ]
    for what, count in (
        ("not recovered", summary.not_recovered),
        ("recovery not shown", summary.not_shown),
        ("no figures", summary.unmeasured),
    ):
        of_all = f" {count} of {summary.injected} times" if summary.injected > 1 else ""
        parts += [f"{what}{of_all}"] if count else []
    times = f"mean of {summary.repeats}" if summary.injected > 1 else "once"
    return f"{summary.action}: {', '.join(parts)} ({times})"


def tables(measurement: Measurement) -> Iterator[Table]:
    """Yield a table of each action over its repeats, and one of the phases of each change."""
    for summary in summaries(measurement):
        yield _table(summary, measurement.scenario)
        changes = [one for one in _repeats(measurement, summary) if one.phases]
        for number, one in enumerate(changes, 1):
            yield _phases(one, f", repeat {number}" if len(changes) > 1 else "")


def described(measurement: Measurement) -> Iterator[str]:
    """Yield sentences about the effect of each action on clients."""
    for summary in summaries(measurement):
        yield from sentences(summary, _repeats(measurement, summary))


def over_workloads(measurements: Sequence[Measurement]) -> Iterator[Table]:
    """Yield a table of each action that occurs in several workloads, over these workloads.

    The published task files list a workload five times instead of repeating the fault.
    """
    for scenario in dict.fromkeys(one.scenario for one in measurements):
        own = [one for one in measurements if one.scenario == scenario]
        by_workload = [effects(one) for one in own]
        counts = Counter(action for all_ in by_workload for action in {one.action for one in all_})
        without = [fault for one in own for fault in _unmeasured(one)]
        for summary in summarize((one for all_ in by_workload for one in all_), without):
            if counts[summary.action] > 1:
                yield _table(summary, scenario)


def _table(summary: FaultSummary, scenario: str) -> Table:
    published = _published(scenario, summary.action)
    found = []
    for name, label, unit in ROWS:
        one = summary.figure(name)
        if one is None or (name == DOWNTIME and one == summary.figure("downtime_s")):
            continue
        shown = ENDED_AFTER if name == "mttr_s" and summary.not_shown else label
        row = [shown, _of_all(one, unit, summary), _interval(one, unit)]
        if published:
            figure = published.get(name)
            row.append("" if figure is None else f"{figure[0]:g} +- {figure[1]:g} {unit}".strip())
        found.append(Row(tuple(row)))
    heads = ("mean", "95 % interval", *(("published 2017",) if published else ()))
    of_all = f" of {summary.injected}" if summary.unmeasured else ""
    times = f"{summary.repeats}{of_all} times" if summary.injected > 1 else "once"
    title = f"{summary.action}, {times}"
    return Table(title, columns("figure", numbers=heads), tuple(found), is_primary=True)


def _of_all(estimate: Interval, unit: str, summary: FaultSummary) -> str:
    """Return a mean; with the number of its repeats, if the others have no such figure."""
    value = _value(estimate.mean, unit)
    if estimate.count == summary.repeats:
        return value
    return f"{value} (in {estimate.count} of {summary.repeats})"


def _value(value: float, unit: str) -> str:
    if unit == "%":
        return _percent(value)
    digits = 3 if unit == "s" and abs(value) < 1 else 2 if unit == "s" else 1
    return f"{round(value, digits) + 0.0:.{digits}f} {unit}".strip()  # + 0.0: no "-0.000"


def _percent(share: float) -> str:
    """Return a share; 0 % only if none failed, 100 % only if all did."""
    if 0.0 < share < LEAST_SHARE:
        return f"{100 * share:.{-math.floor(math.log10(100 * share))}f} %"
    return f"{100 * (share if share >= 1.0 else min(share, 1.0 - 2 * LEAST_SHARE)):.1f} %"


def _interval(estimate: Interval, unit: str) -> str:
    """Return the interval; empty without one, and if the repeats did not differ."""
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return ""
    return f"{_value(estimate.low, unit)} to {_value(estimate.high, unit)}"


def sentences(summary: FaultSummary, repeats: list[FaultEffect]) -> Iterator[str]:
    """Describe the effect of one action on clients, over its repeats."""
    failed, due = sum(one.failed for one in repeats), sum(one.due for one in repeats)
    if not any(one.phases for one in repeats):
        yield f"{failed:,} of {figures.counted(due, 'request')} failed from the fault on."
    if earlier := sum(one.baseline_failed for one in repeats):
        requests = figures.counted(sum(one.baseline_due for one in repeats), "request")
        yield f"{earlier:,} of {requests} failed before the fault, too."
    kinds: dict[str, tuple[int, float]] = {}
    for effect in repeats:
        for kind in effect.errors:
            count, worst_s = kinds.get(kind.kind, (0, 0.0))
            kinds[kind.kind] = (count + kind.count, max(worst_s, kind.max_s))
    for cause, (count, worst_s) in sorted(kinds.items(), key=lambda one: -one[1][0]):
        yield f"{figures.counted(count, 'time')}: {cause}, told after {worst_s:.2f} s at most."
    yield from _recovery(summary, repeats)


def _recovery(summary: FaultSummary, repeats: list[FaultEffect]) -> Iterator[str]:
    """Describe the end of the observation, unless the service recovered each time."""
    if summary.not_recovered:
        yield figures.begun(
            f"{_times(summary.not_recovered, summary)}it was not as before at the end, "
            f"{max(one.observed_s for one in repeats):.0f} s after the fault"
            f": {_change(_remainders(repeats, Recovery.NOT_RECOVERED))}."
        )
    if known := _remainders(repeats, Recovery.NOT_SHOWN):
        yield figures.begun(
            f"{_times(len(known), summary)}the requests do not show whether it recovered: "
            f"{_change(known)}."
        )


def _times(count: int, summary: FaultSummary) -> str:
    """Return "2 of 3 times " for the beginning of a sentence; empty for a single fault."""
    return f"{count} of {summary.injected} times " if summary.injected > 1 else ""


def _remainders(repeats: list[FaultEffect], state: Recovery) -> list[Remainder]:
    """Return what was compared in the repeats that ended in a state."""
    pairs = zip(repeats, recoveries(repeats), strict=True)
    return [one.remainder for one, own in pairs if own is state]


def _change(remainders: list[Remainder]) -> str:
    """Return the share of failures and the latency at the end, beside those before."""
    rest = pooled(remainders)
    rise, ratio = share_rise(rest), latency_ratio(rest)
    text = (
        f"{rest.after_failed:,} of {rest.after_due:,} failed at the end and "
        f"{rest.before_failed:,} of {rest.before_due:,} before, a rise of {100 * rise.low:.2f} to "
        f"{100 * rise.high:.2f} percentage points"
    )
    if ratio is not None:
        text += f"; latency was {ratio.low:.2f} to {ratio.high:.2f} times that before"
    return f"{text} (90 % intervals)"


def _logged(repeats: list[FaultEffect]) -> str:
    """Return the failures in haproxy's log beside those that were counted; empty without a log."""
    logged = [one.logged_failures for one in repeats if one.logged_failures is not None]
    if not logged or len(logged) < len(repeats):
        return ""
    total = sum(one.failed + one.baseline_failed for one in repeats)
    return (
        f"haproxy's own log has {figures.counted(sum(logged), 'failed request')} of these "
        f"loads, Loadstone counted {total:,}{_not_logged(repeats)}."
    )


def _not_logged(repeats: list[FaultEffect]) -> str:
    """Return the failures that haproxy's log may lack, with the reason."""
    counts = {
        "closed without an answer, which it does not log": (CLOSED,),
        "given up by the client, which it logs as answered where an answer came later": GIVEN_UP,
    }
    clauses = ""
    for text, kinds in counts.items():
        count = sum(kind.count for one in repeats for kind in one.errors if kind.kind in kinds)
        clauses += f", {count:,} of them {text}" if count else ""
    return clauses


def changed(effect: FaultEffect) -> str:
    """Return one sentence on the cost of a rolling change: failures, p99, and when."""
    text = f"{effect.failed:,} of {figures.counted(effect.due, 'request')} failed"
    where = [f"{one.failed:,} while {one.words}" for one in effect.phases if one.failed]
    if where:
        text += f" ({', '.join(where)})"
    usual_ms = 1000 * effect.baseline_p99_s
    known = [one for one in effect.phases if one.p99_s is not None]
    if not known:
        return f"{text}."
    slow = [one for one in known if one.slow_s > 0]
    worst = max(slow or known, key=lambda one: one.p99_s or 0.0)
    worst_ms = 1000 * (worst.p99_s or 0.0)
    if not slow:
        return f"{text}; p99 was {usual_ms:.0f} ms before, {worst_ms:.0f} ms at most meanwhile."
    if worst_ms <= usual_ms:  # one slow request before is enough for that
        return (
            f"{text}; p99 was {usual_ms:.0f} ms before, {worst_ms:.0f} ms at most meanwhile, but "
            f"most requests were slower while {worst.words}."
        )
    lasted = f"{worst.slow_s:.0f}" if worst.slow_s >= 1 else f"{worst.slow_s:.1f}"
    return (
        f"{text}; p99 rose from {usual_ms:.0f} to {worst_ms:.0f} ms for {lasted} s while "
        f"{worst.words}."
    )


def _phases(effect: FaultEffect, which: str) -> Table:
    """Return the timeline of a rolling change."""
    rows = []
    for one in effect.phases:
        failed, p99 = "no request was due", ""  # after the load, or at a low rate
        if one.due:
            failed = f"{one.failed:,} of {one.due:,}"
            p99 = "none succeeded" if one.p99_s is None else f"{1000 * one.p99_s:.0f} ms"
        rows.append(Row((one.words, f"{one.begin_s:.1f} to {one.end_s:.1f} s", failed, p99)))
    heads = columns("phase", numbers=("after the start", "failed", "p99"))
    return Table(f"{effect.action}{which}, phases", heads, tuple(rows), is_primary=True)
