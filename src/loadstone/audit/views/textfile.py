"""An audit as metrics, for node_exporter's textfile collector and Prometheus."""

from collections.abc import Iterator

from loadstone.audit.evaluate import Audit, RuleState
from loadstone.report import exposition

HELP = {
    "loadstone_audit_rule_state": "How a rule ended on a host (label state); always 1.",
    "loadstone_audit_findings": "Findings on a host, by severity.",
    "loadstone_audit_unknown": "Rules that could not be checked on a host.",
    "loadstone_audit_host_reached": "1 if the host gave its facts, else 0.",
    "loadstone_audit_logins_per_second": "Logins per second that password checks allow at most.",
    "loadstone_audit_database_connections": "Database connections that Keystone may open.",
}
FACTS = {
    "loadstone_audit_logins_per_second": "capacity.logins_per_s",
    "loadstone_audit_database_connections": "capacity.db_connections",
}
SEVERITIES = ("critical", "warning", "info")
Point = tuple[str, dict[str, str], float]


def render(audit: Audit) -> str:
    """Return the metrics as text."""
    from prometheus_client import Metric

    metrics = {name: Metric(name, text, "gauge") for name, text in HELP.items()}
    for name, labels, value in _points(audit):
        metrics[name].add_sample(name, labels, value)

    return exposition.text_of(metric for metric in metrics.values() if metric.samples)


def _points(audit: Audit) -> Iterator[Point]:
    for result in audit.results:
        labels = {
            "host": result.host,
            "rule": result.rule.id,
            "state": result.state.value,
            "severity": result.severity.value,
        }
        yield "loadstone_audit_rule_state", labels, 1.0
    for host in audit.hosts:
        own = audit.of(host)
        name = {"host": host.host}
        for severity in SEVERITIES:
            count = sum(r.is_finding and r.severity.value == severity for r in own)
            yield "loadstone_audit_findings", {**name, "severity": severity}, float(count)
        unknown = sum(result.state is RuleState.UNKNOWN for result in own)
        yield "loadstone_audit_unknown", name, float(unknown)
        yield "loadstone_audit_host_reached", name, float(host.failure is None)
        for metric, fact in FACTS.items():
            value = host.facts.values.get(fact)
            if isinstance(value, int | float):
                yield metric, name, float(value)
