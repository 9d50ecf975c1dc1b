"""An audit as SARIF 2.1.0, which editors and code hosts show at the line of the setting.

Format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import json
from importlib.metadata import version
from pathlib import PurePosixPath

from loadstone.audit.evaluate import Audit, RuleResult, RuleState
from loadstone.audit.rule import Rule
from loadstone.diagnosis.finding import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
# 3.27.10: `kind` says how a rule ended; a level other than none belongs to "fail" alone.
KINDS = {
    RuleState.PASS: "pass",
    RuleState.FAIL: "fail",
    RuleState.WARN: "fail",
    RuleState.SKIP: "notApplicable",
    RuleState.UNKNOWN: "review",
    RuleState.WAIVED: "fail",
}


def render(audit: Audit) -> str:
    """Return the log as JSON."""
    rules = list({result.rule.id: result.rule for result in audit.results}.values())
    places = {rule.id: place for place, rule in enumerate(rules)}
    driver = {
        "name": "loadstone audit",
        "version": version("loadstone"),
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_result(result, places[result.rule.id]) for result in audit.results],
        "invocations": [_invocation(audit)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, object]:
    fix = "\n".join(part for part in (rule.fix.text, rule.fix.lines) if part)
    properties: dict[str, object] = {
        "tags": [rule.group, rule.pack],
        "sources": list(rule.sources),
        "tradeoff": rule.tradeoff,
        "confidence": rule.confidence.value,
        "effect": rule.effect,
    }
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "help": {"text": fix},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": properties,
    }


def _result(result: RuleResult, place: int) -> dict[str, object]:
    is_fail = KINDS[result.state] == "fail"
    tree: dict[str, object] = {
        "ruleId": result.rule.id,
        "ruleIndex": place,
        "kind": KINDS[result.state],
        "level": LEVELS[result.severity] if is_fail else "none",
        "message": {"text": f"{result.host}: {result.message or result.rule.title}"},
        "properties": {
            "host": result.host,
            "state": result.state.value,
            "effect": result.effect,
        },
    }
    if result.state is RuleState.WAIVED:
        tree["suppressions"] = [{"kind": "external", "justification": result.message}]
    place_ = {"logicalLocations": [{"name": result.host, "kind": "resource"}]}
    physical = _physical(result)
    tree["locations"] = [place_ | physical]
    return tree


def _physical(result: RuleResult) -> dict[str, object]:
    origin = result.origin
    if origin is None:
        return {}
    path = PurePosixPath(origin.path)
    uri = path.as_uri() if path.is_absolute() else origin.path
    location = {"artifactLocation": {"uri": uri}, "region": {"startLine": origin.line}}
    return {"physicalLocation": location}


def _invocation(audit: Audit) -> dict[str, object]:
    failures = [host for host in audit.hosts if host.failure is not None]
    notes = [
        {"level": "error", "message": {"text": f"{host.host}: {host.failure}"}} for host in failures
    ]
    return {"executionSuccessful": not failures, "toolExecutionNotifications": notes}
