"""The table in the terminal, grouped by host."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadstone.audit.evaluate import Audit, RuleResult, RuleState, counted
from loadstone.audit.facts import HostFacts
from loadstone.audit.rule import format_value
from loadstone.diagnosis.finding import Severity

NOTHING_FOUND = (
    "no part of an identity service was found here: only rules on the machine were checked"
)
STYLES = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def render(audit: Audit, console: Console, *, all_states: bool) -> None:
    """Print findings and what could not be checked; with `all_states` every rule."""
    for host in audit.hosts:
        own = audit.of(host)
        console.print(Text(f"{host.host}  ", style="bold") + Text(counted(own), style="dim"))
        if host.failure is None and not host.facts.roles:
            console.print(Text(NOTHING_FOUND, style="yellow"))
        computed = _computed(host)
        if computed:
            console.print(Text(computed, style="dim"))
        rows = [result for result in own if all_states or _is_shown(result)]
        if rows:
            console.print(_table(rows))
        console.print()


def _is_shown(result: RuleResult) -> bool:
    return result.state not in (RuleState.PASS, RuleState.SKIP)


def _computed(host: HostFacts) -> str:
    """Return the derived capacities of a host."""
    values = host.facts.values
    templates = (
        ("capacity.logins_per_s", "at most {} logins per second by password"),
        ("capacity.db_connections", "up to {} database connections"),
        ("capacity.cache_connections", "up to {} connections to each memcached"),
    )
    return "; ".join(
        text.format(format_value(values[fact])) for fact, text in templates if fact in values
    )


def _table(rows: list[RuleResult]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for name in ("rule", "state", "severity"):
        table.add_column(name, no_wrap=True)
    table.add_column("what was found, and what to try", overflow="fold")
    unknown: dict[str, list[RuleResult]] = {}
    order = sorted(rows, key=lambda row: (list(RuleState).index(row.state), -row.severity.rank))
    for row in sorted(order, key=lambda row: not row.is_finding):
        if row.state is RuleState.UNKNOWN:
            # One cause, as an unreadable file, leaves many rules open.
            unknown.setdefault(row.message.partition(": ")[2] or row.message, []).append(row)
            continue
        style = STYLES[row.severity] if row.is_finding else ""
        severity = row.severity.value if _is_shown(row) else ""
        table.add_row(
            Text(row.rule.id),
            Text(row.state.value, style),
            Text(severity, style),
            _description(row),
        )
    for reason, group in unknown.items():
        worst = max(group, key=lambda row: row.severity.rank)
        others = ", ".join(row.rule.id for row in group if row is not worst)
        text = f"{reason} (also leaves {others} open)" if others else worst.message
        table.add_row(worst.rule.id, worst.state.value, worst.severity.value, Text(text))
    return table


def _description(row: RuleResult) -> RenderableType:
    if not row.is_finding:
        return Text(row.message)
    rule = row.rule
    where = f"{row.origin.path}:{row.origin.line}; " if row.origin else ""
    restart = f" Restart: {rule.fix.restart}." if rule.fix.restart else ""
    parts = [Text(row.message), Text(f"fix: {rule.fix.text}{restart}", style="green")]
    if rule.tradeoff:
        parts.append(Text(f"trade-off: {rule.tradeoff}"))
    parts.append(
        Text(f"{where}threshold {rule.confidence.value}; effect: {row.effect}", style="dim")
    )
    return Group(*parts)
