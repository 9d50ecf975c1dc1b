"""Converts JSON-compatible runs from before revision 0003 to measurements.

Until then a run had findings (searches and fixed loads, with trials) and performances (workloads
of a task; each step was a performance of its own).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Plain = dict[str, Any]
ROW = ("min_s", "median_s", "p90_s", "p95_s", "p99_s", "max_s", "mean_s")
NO_TICKS: Plain = {"due": [], "ok": [], "failed": [], "in_flight": []}
NOT_JUDGED: Plain = {"state": "undecided", "reasons": [], "cause": None}
WENT_WRONG = "something_went_wrong"  # since revision 0003 derived from the failure


def measurements(run: Mapping[str, Any]) -> Iterator[Plain]:
    """Yield the measurements of a run in the form of revision 0003, each with its trials."""
    findings = run.get("findings") or []
    for number, finding in enumerate(findings, 1):
        is_last = number == len(findings) and run["status"] != "finished"
        yield _of_finding(finding, run["status"] if is_last else "finished")
    for steps in _workloads(run.get("performances") or []):
        yield _of_performances(steps)


def _of_finding(finding: Mapping[str, Any], status: str) -> Plain:
    names = ("scenario", "title", "request", "capacity", "wall_s")
    return {
        **{name: finding[name] for name in names},
        "notes": finding.get("notes", []),
        "parameters": finding.get("parameters", []),
        "policy": "search" if finding.get("is_search", True) else "fixed",
        "status": status,
        "trials": [_of_trial(trial) for trial in finding["trials"]],
    }


def _of_trial(trial: Mapping[str, Any]) -> Plain:
    names = ("number", "rate_rps", "purpose", "planned_s", "health", "verdict")
    return {
        **{name: trial[name] for name in names},
        "usage": trial.get("usage"),
        "samples_file": trial.get("samples_file"),
        "stats": _of_summary(trial["summary"]),
        "timeline": trial["ticks"],
    }


def _of_summary(summary: Mapping[str, Any]) -> Plain:
    count = summary["ok"] + sum(count for _, count in summary["errors"])
    return {
        "total": _of_percentiles("total", count, summary["ok"], summary["latency"]),
        "service": _of_percentiles("service time", count, summary["ok"], summary["service_time"]),
        "load_s": summary["load_s"],
        "throughput_rps": summary["throughput_rps"],
        "failures": [_of_error(*error) for error in summary["errors"]],
        "cut_off": summary["due"] - count,
        "backlog_growth": summary["backlog_growth"],
        "latency_slope": summary.get("latency_slope", 0.0),
    }


def _of_error(cause: str, count: int) -> Plain:
    known = {"cause": cause, "count": count, "message": cause}
    return known | {"iteration": 0, "action": "", "outcome": 0, "status": 0}


def _of_percentiles(name: str, count: int, ok: int, times: Mapping[str, Any]) -> Plain:
    found_ms = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms", "mean_ms")
    known = {"name": name, "count": count, "ok": ok, "min_s": "NaN"}
    return known | {
        ours: value if isinstance(value := times[theirs], str) else value / 1000
        for ours, theirs in zip(ROW[1:], found_ms, strict=True)
    }


def _workloads(performances: Sequence[Plain]) -> Iterator[list[Plain]]:
    """Group the steps of a workload; any other performance is a group of its own."""
    group: list[Plain] = []
    for one in performances:
        if group and not (_is_step(one) and _goes_on(group[-1], one)):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _is_step(performance: Mapping[str, Any]) -> bool:
    return bool(performance.get("is_step"))


def _goes_on(last: Plain, step: Plain) -> bool:
    same = ("subtask", "scenario", "description")
    if not _is_step(last) or any(last[name] != step[name] for name in same):
        return False
    (rest, value), (other, next_value) = _load(last), _load(step)
    return rest == other and value < next_value


def _load(performance: Mapping[str, Any]) -> tuple[Plain, float]:
    """Return a workload without the setting that rises, and the value of that setting."""
    spec = json.loads(performance["given"])
    ((name, settings),) = spec["runner"].items()
    settings = dict(settings or {})
    value = settings.pop("rps" if name == "rps" else "concurrency", 1)
    return spec | {"runner": {name: settings}}, value if isinstance(value, int | float) else 0.0


def _of_performances(steps: Sequence[Plain]) -> Plain:
    first, last = steps[0], steps[-1]
    is_step = _is_step(first)
    tried = [_of_performance(number, one) for number, one in enumerate(steps, 1)]
    return {
        "scenario": first["scenario"],
        "title": first["subtask"],
        "policy": "steps" if is_step else "fixed",
        "status": last["status"],
        "failure": last.get("failure"),
        "capacity": None,
        "wall_s": sum(one["full_s"] for one in steps),
        "subtask": first["subtask"],
        "description": first["description"],
        "spec": first["given"],
        "reduced": first.get("reduced", []),
        "requests_as_rally": first.get("requests_as_rally", False),
        "trials": [trial for trial in tried if trial is not None],
    }


def _of_performance(number: int, performance: Mapping[str, Any]) -> Plain | None:
    showing = performance.get("showing")
    rows = performance.get("sla", [])
    checks = [row for row in rows if row["criterion"] != WENT_WRONG or not _failed(performance)]
    if showing is None and not checks:
        return None
    runner = json.loads(performance["given"])["runner"]
    rate = (runner.get("rps") or {}).get("rps")
    copied = ("health", "usage", "start_s", "samples_file")
    several = ("actions", "hook_runs", "outputs")
    is_step = _is_step(performance)
    stats = showing or _nothing()
    return {
        **{name: performance.get(name) for name in copied},
        **{name: performance.get(name, []) for name in several},
        "number": number,
        "rate_rps": float(rate) if isinstance(rate, int | float) else None,
        "purpose": "",
        "planned_s": stats["load_s"],
        "stats": stats,
        "timeline": NO_TICKS,
        "verdict": NOT_JUDGED,
        "checks": checks,
        "status": performance["status"],
        "wall_s": performance["full_s"] if is_step else 0.0,
        "runner": json.dumps(runner) if is_step else "",
        "outputs_dropped": performance.get("outputs_dropped", 0),
    }


def _failed(performance: Mapping[str, Any]) -> bool:
    return performance.get("failure") is not None


def _nothing() -> Plain:
    row = {"count": 0, "ok": 0, **dict.fromkeys(ROW, "NaN")}
    total, service = {"name": "total", **row}, {"name": "service time", **row}
    return {"total": total, "service": service, "load_s": 0.0, "throughput_rps": 0.0}
