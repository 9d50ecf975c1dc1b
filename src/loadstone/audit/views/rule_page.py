"""One rule as a page of Markdown: in the documentation, and for `loadstone audit rules ID`."""

from loadstone.audit.rule import CORE, Rule


def render(rule: Rule) -> str:
    """Return the page of a rule."""
    parts = [f"# {rule.id}: {rule.title}", _facts(rule), f"Message: {rule.message}"]
    parts.append(f"## Check\n\n    {rule.check}")
    if rule.critical_if:
        parts.append(f"Critical where `{rule.critical_if}`.")
    parts.append(f"## Fix\n\n{rule.fix.text}")
    if rule.fix.lines:
        parts.append("\n".join(f"    {line}".rstrip() for line in rule.fix.lines.splitlines()))
    if rule.fix.restart:
        parts.append(f"Restart: {rule.fix.restart}.")
    if rule.tradeoff:
        parts.append(f"## Trade-off\n\n{rule.tradeoff}")
    parts.append("## Sources\n\n" + "\n".join(f"- {source}" for source in rule.sources))
    return "\n\n".join(parts) + "\n"


def _facts(rule: Rule) -> str:
    applies = rule.applies
    roles = ", ".join(applies.roles) or "every host"
    when = "" if applies.when == "True" else f", when `{applies.when}`"
    pack = "" if rule.pack == CORE else f" (pack {rule.pack})"
    rows = (
        ("group", f"{rule.group}{pack}"),
        ("severity", rule.severity.value),
        ("applies to", f"{roles}{when}"),
        ("needs", ", ".join(f"`{name}`" for name in rule.needs)),
        ("threshold", rule.confidence.value),
        ("effect", rule.effect),
    )
    return "| | |\n| --- | --- |\n" + "\n".join(f"| {name} | {text} |" for name, text in rows)
