"""An audit in the form of Browbeat's bug report (ansible/check, bug_report.j2, 2019)."""

import re

from loadstone.audit.evaluate import Audit, RuleResult
from loadstone.diagnosis.finding import Severity

LINE = "-" * 52
BUG = re.compile(r"\bbz(\d+)\b")
BUGZILLA = "https://bugzilla.redhat.com/show_bug.cgi?id="


def render(audit: Audit) -> str:
    """Return the report: each host with its findings; Browbeat knows two severities."""
    parts = ["# Browbeat generated bug report"]
    for host in audit.hosts:
        parts += [LINE, f"| Issues for host : {host.host}", LINE]
        parts += [_bug(result) for result in audit.findings(host)]
    return "\n".join(parts) + "\n"


def _bug(result: RuleResult) -> str:
    rule = result.rule
    numbers = [found[1] for source in rule.sources if (found := BUG.search(source))]
    is_critical = result.severity is Severity.CRITICAL
    rows = (
        ("Bug", f"bz{numbers[0]}" if numbers else rule.id),
        ("Description", rule.title),
        ("URL", f"{BUGZILLA}{numbers[0]}" if numbers else "none"),
        ("Severity", "Critical" if is_critical else "Suggestion"),
        ("Impact", " ".join(result.message.split())),
    )
    return "".join(f"{name}: {text}\n" for name, text in rows)
