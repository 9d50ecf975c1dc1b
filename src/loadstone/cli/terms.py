"""On which terms N is searched for: options, their types, and the order made of them."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import click

if TYPE_CHECKING:
    from loadstone.run import Order

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# The ceilings of every run: tokens last an hour, a machine's ports and descriptors end sooner.
LONGEST_S = 3000.0
SHORTEST_S = 20.0
HIGHEST_RPS = 100_000.0
METHOD = "meter"

Command = Callable[..., object]


class Terms(TypedDict):
    """What the command line says of the search."""

    budget_s: float
    max_rate_rps: float
    users: int
    method: str
    objective: tuple[str, ...]
    max_connections: int


class Duration(click.ParamType[float]):
    """90, 90s, 4m, 0.5h: seconds within what a search may take."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Give seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no duration; write it like 90s, 4m or 0.5h", param, ctx)
        seconds = float(match[1]) * SECONDS[match[2] or "s"]
        if not SHORTEST_S <= seconds <= LONGEST_S:
            self.fail(f"{value} is outside {SHORTEST_S:.0f}s to {LONGEST_S / 60:.0f}m", param, ctx)
        return seconds


def search_options(command: Command) -> Command:
    """Add the options that say on which terms N is searched for."""
    rate = click.FloatRange(0.1, HIGHEST_RPS)
    options = (
        ("--budget", "budget_s", Duration(), "4m", "Load time at most, such as 90s or 4m."),
        ("--max-rate", "max_rate_rps", rate, 5000.0, "Requests per second, never more."),
        ("--users", "users", click.IntRange(0, 10_000), 10, "Users to make and remove again; "
         "0: the target's own user, nothing is made."),
        ("--method", "method", str, METHOD, "How N is searched for."),
        ("--max-connections", "max_connections", click.IntRange(1, 10_000), 256,
         "Connections open at once at most."),
    )  # fmt: skip
    for flag, name, kind, default, words in reversed(options):
        add = click.option(flag, name, type=kind, default=default, show_default=True, help=words)
        command = add(command)
    words = "What must hold besides: 'p99<500ms', 'errors<0.1%'; may be repeated."
    return click.option("--objective", multiple=True, metavar="TEXT", help=words)(command)


def order(kind: str, scenarios: tuple[str, ...], terms: Terms) -> "Order":
    """Make the order that the options describe; InvalidInput names what cannot be."""
    from loadstone.analysis.goal import goal
    from loadstone.keystone.contexts.users import UsersSettings
    from loadstone.keystone.scenarios import SCENARIOS
    from loadstone.plan.model import Limits
    from loadstone.run import Order
    from loadstone.search.settings import Settings
    from loadstone.search.strategies import strategy

    settings = Settings(
        budget_s=terms["budget_s"],
        ceiling_rps=terms["max_rate_rps"],
        max_connections=terms["max_connections"],
    )
    return Order(
        kind=kind,
        scenarios=tuple(SCENARIOS[name] for name in scenarios),
        strategy=strategy(terms["method"], settings),
        load_s=terms["budget_s"],
        goal=goal(terms["objective"]),
        users=UsersSettings.spread(terms["users"]),
        limits=Limits(max_connections=terms["max_connections"]),
        parameters=(
            ("method", terms["method"]),
            ("load time at most", f"{terms['budget_s']:.0f} s"),
            ("highest rate allowed", f"{terms['max_rate_rps']:g}/s"),
            ("users", str(terms["users"] or "the target's own")),
            ("objectives", ", ".join(terms["objective"]) or "no growing backlog, no errors"),
        ),
    )
