"""Parts of a report as data, which `--json` writes."""

from typing import Any

Data = dict[str, Any]


def only(document: Data) -> Data:
    """Return the only measurement, with its statements as texts."""
    [one] = document["measurements"]
    return _with_words(one)


def of_run(document: Data) -> Data:
    """Return the only measurement, with the id of its run."""
    return only(document) | {"run_id": document["run_id"]}


def workloads(document: Data) -> list[Data]:
    """Return each load of a task: a workload, or a step of one, with the figures of its trial."""
    return [
        _load(one, trial) for one in document["measurements"] for trial in one["trials"] or [None]
    ]


def _with_words(one: Data) -> Data:
    return one | {"words": [statement["text"] for statement in one.get("statements", ())]}


def _load(one: Data, trial: Data | None) -> Data:
    given = one["given"] | ({"runner": trial["runner"]} if trial and trial["runner"] else {})
    checks = trial["checks"] if trial and one["policy"] == "steps" else one["checks"]
    rest = {
        "given": given,
        "total": trial["latency"] if trial else None,
        "sla": checks,
        "pass_sla": all(check["success"] for check in checks),
    }
    shared = {key: one[key] for key in ("status", "resources", "findings", "load_seconds")}
    return one | (trial or {}) | rest | shared | {"generator": trial and trial["generator"]}
