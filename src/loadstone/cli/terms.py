"""On which terms N is searched for: options, their types, and the order made of them."""

from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from loadstone.cli.choose import Command
from loadstone.cli.duration import Duration, Number
from loadstone.cli.generator import generator_options
from loadstone.plan.model import Http

if TYPE_CHECKING:
    from loadstone.run import Order

# The ceiling of every run in rate: one machine's ports and descriptors end sooner.
HIGHEST_RPS = 100_000.0
METHOD = "meter"


class Terms(TypedDict):
    """What the command line says of the search."""

    budget_s: float
    max_rate_rps: float
    users: int
    method: str
    objective: tuple[str, ...]
    max_connections: int
    curve_s: float
    cores: tuple[int, ...]
    http: NotRequired[Http]  # 1.1
    repeat: NotRequired[int]  # 1


def search_options(command: Command) -> Command:
    """Add the options that say on which terms N is searched for."""
    rate = Number(0.1, HIGHEST_RPS)
    options = (
        ("--budget", "budget_s", Duration(), "4m", "Load time at most, such as 90s or 4m."),
        ("--max-rate", "max_rate_rps", rate, 5000.0, "Requests per second, never more."),
        ("--users", "users", click.IntRange(0, 10_000), 10, "Users to make and remove again; "
         "0: the target's own user, nothing is made."),
        ("--method", "method", str, METHOD, "How N is searched for."),
        ("--max-connections", "max_connections", click.IntRange(1, 10_000), 256,
         "Connections open at once at most; with --http2 requests in flight."),
        ("--curve", "curve_s", Number(0.0, 300.0), 0.0, "Seconds at each of a few rates "
         "up to N and a little beyond, besides the budget; 0: no curve."),
        ("--repeat", "repeat", click.IntRange(1, 100), 1, "Searches, one after the other, and N of "
         "all of them: noise slower than one search shows between them."),
    )  # fmt: skip
    for flag, name, kind, default, words in reversed(options):
        add = click.option(flag, name, type=kind, default=default, show_default=True, help=words)
        command = add(command)
    command = generator_options(command)
    words = "What must hold besides: 'p99<500ms', 'errors<0.1%'; may be repeated."
    return click.option("--objective", multiple=True, metavar="TEXT", help=words)(command)


def order(kind: str, scenarios: tuple[str, ...], terms: Terms) -> "Order":
    """Make the order that the options describe; InvalidInput names what cannot be."""
    from loadstone.analysis.goal import goal
    from loadstone.keystone.contexts.users import UsersSettings
    from loadstone.keystone.scenarios import named
    from loadstone.plan.model import Limits, Placement
    from loadstone.run import Job, Order
    from loadstone.search.settings import Settings
    from loadstone.search.strategies import strategy

    settings = Settings(
        budget_s=terms["budget_s"],
        ceiling_rps=terms["max_rate_rps"],
        max_connections=terms["max_connections"],
        curve_s=terms["curve_s"],
    )
    jobs = tuple(
        Job(
            scenario=named(name),
            how=strategy(terms["method"], settings),
            load_s=terms["budget_s"],
            parameters=(
                ("method", terms["method"]),
                ("load time at most", f"{terms['budget_s']:.0f} s"),
                ("highest rate allowed", f"{terms['max_rate_rps']:g}/s"),
                ("users", str(terms["users"] or "the target's own")),
                ("HTTP", terms.get("http", "1.1")),
                ("objectives", ", ".join(terms["objective"]) or "no growing backlog, no errors"),
            ),
            search=(number, terms.get("repeat", 1)),
        )
        for name in scenarios
        for number in range(1, terms.get("repeat", 1) + 1)
    )
    return Order(
        kind=kind,
        jobs=jobs,
        goal=goal(terms["objective"]),
        users=UsersSettings.spread(terms["users"]),
        limits=Limits(max_connections=terms["max_connections"]),
        placement=Placement.on(terms["cores"], terms.get("http", "1.1")),
    )
