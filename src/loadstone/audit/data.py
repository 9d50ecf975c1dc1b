"""An audit as JSON."""

from dataclasses import asdict

from loadstone.audit.evaluate import Audit, RuleResult, RuleState
from loadstone.audit.facts import HostFacts
from loadstone.audit.gain import Gain
from loadstone.diagnosis.finding import Severity


def as_tree(audit: Audit, fail_on: Severity, exit_code: int) -> dict[str, object]:
    """Return the audit as JSON."""
    counts = {state.value: 0 for state in RuleState}
    for result in audit.results:
        counts[result.state.value] += 1
    return {
        "results": [_result(result) for result in audit.results],
        "findings": [_finding(result) for result in audit.findings()],
        "hosts": [_host(host) for host in audit.hosts],
        "summary": counts,
        "fail_on": fail_on.value,
        "exit_code": exit_code,
    }


def _result(result: RuleResult) -> dict[str, object]:
    rule, origin = result.rule, result.origin
    return {
        "rule": rule.id,
        "title": rule.title,
        "group": rule.group,
        "host": result.host,
        "state": result.state.value,
        "severity": result.severity.value,
        "found": dict(result.found),
        "message": result.message,
        "fix": rule.fix.text,
        "restart": rule.fix.restart or None,
        "tradeoff": rule.tradeoff or None,
        "confidence": rule.confidence.value,
        "effect": result.effect,
        "gain": _gain(result.gain) if result.gain else None,
        "file": origin.path if origin else None,
        "line": origin.line if origin else None,
    }


def _gain(gain: Gain) -> dict[str, object]:
    interval = {} if gain.has_interval else {"low": None, "high": None}  # JSON has no infinity
    return asdict(gain) | interval


def _finding(result: RuleResult) -> dict[str, object]:
    return {"host": result.host, **asdict(result.finding())}


def _host(host: HostFacts) -> dict[str, object]:
    return {
        "name": host.host,
        "failure": host.failure,
        "roles": sorted(host.facts.roles),
        "facts": dict(sorted(host.facts.values.items())),
    }
