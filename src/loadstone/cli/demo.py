"""`loadstone demo`: the whole way on a real Keystone, from nothing to a report."""

from typing import TYPE_CHECKING

import click

from loadstone.cli.duration import Duration
from loadstone.cli.output import command_line, show
from loadstone.cli.stored import STORE, open_store

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation

NAME = "demo"
USERS = 8


@click.command()
@click.option(
    "--budget",
    "budget_s",
    type=Duration(),
    default="75s",
    show_default=True,
    help="Load time at most, for each of the two searches.",
)
@STORE
@click.pass_context
def demo(ctx: click.Context, budget_s: float, location: "StoreLocation") -> None:
    """Measure a real Keystone on this machine: token issue, token validation, a report.

    Keystone 30.0.0 is installed into an environment of its own, served on loopback with a worker
    per core, measured, and ended. The path of the HTML report is printed last.
    """
    from loadstone.cli.screen import Screen
    from loadstone.config.capacity import SearchTerms, by_name, search_group
    from loadstone.config.model import RunConfig
    from loadstone.exit_code import exit_code, leftovers
    from loadstone.keystone.deploy.settings import LabSettings
    from loadstone.keystone.target import OwnLab
    from loadstone.report import html
    from loadstone.run import run

    searched = [by_name(name, USERS) for name in ("issue", "validate")]
    config = RunConfig(
        kind="demo",
        target=OwnLab(NAME, LabSettings()),
        groups=(search_group(searched, SearchTerms(budget_s=budget_s)),),
        command=command_line(),
    )
    with open_store(location) as store:
        with Screen() as screen:
            result = run(config, store, screen)
        show(result, None)
        path = store.folder(result.run_id) / "report.html"
        code = exit_code(result, leftovers(store, result.run_id))
        html.write(result, lambda trial: store.samples(result.run_id, trial), path)
    click.echo(path)
    ctx.exit(code)
