"""An audit as Markdown, for reports and issue trackers."""

from collections.abc import Sequence

from loadstone.audit.evaluate import Audit, RuleResult, RuleState, counted


def render(audit: Audit) -> str:
    """Return a section per host: its findings with their fixes, then what is unknown."""
    parts = ["# Audit"]
    for host in audit.hosts:
        own = audit.of(host)
        parts.append(f"## {_plain(host.host)}\n\n{counted(own)}")
        parts += [_finding(result) for result in audit.findings(host)]
        parts += _others("Not known", own, RuleState.UNKNOWN)
        parts += _others("Waived", own, RuleState.WAIVED)
    return "\n\n".join(parts) + "\n"


def _finding(result: RuleResult) -> str:
    rule, origin = result.rule, result.origin
    lines = [
        f"### {rule.id} ({result.severity.value}): {_plain(rule.title)}",
        _plain(result.message),
    ]
    restart = f" Restart: {rule.fix.restart}." if rule.fix.restart else ""
    lines.append(f"**Fix:** {_plain(rule.fix.text)}{restart}")
    if rule.fix.lines:
        lines.append(f"```\n{rule.fix.lines.rstrip()}\n```")
    if rule.tradeoff:
        lines.append(f"**Trade-off:** {_plain(rule.tradeoff)}")
    path = origin.path.replace("`", "?") if origin else ""  # it would end the code
    where = f"`{path}:{origin.line}`; " if origin else ""
    lines.append(f"{where}threshold {rule.confidence.value}; effect: {result.effect}")
    return "\n\n".join(lines)


def _others(title: str, results: Sequence[RuleResult], state: RuleState) -> list[str]:
    rows = [f"- {r.rule.id}: {_plain(r.message)}" for r in results if r.state is state]
    return [f"### {title}\n\n" + "\n".join(rows)] if rows else []


def _plain(text: str) -> str:
    """Escape Markdown in text from hosts."""
    for sign in ("\\", "`", "*", "_", "<", "[", "|"):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
