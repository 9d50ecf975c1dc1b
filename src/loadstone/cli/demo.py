"""`loadstone demo`: the whole way on a real Keystone, from nothing to a report."""

from pathlib import Path

import click

from loadstone.cli.duration import Duration
from loadstone.cli.stored import STORE, open_store
from loadstone.cli.terms import METHOD, Terms

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
def demo(ctx: click.Context, budget_s: float, folder: Path | None) -> None:
    """Measure a real Keystone on this machine: token issue, token validation, a report.

    Keystone 30.0.0 is installed into an environment of its own, served on loopback with a worker
    per core, measured, and ended. The path of the HTML report is printed last.
    """
    from loadstone.cli.capacity import command_line
    from loadstone.cli.choose import of_deployment
    from loadstone.cli.outcome import exit_code, show
    from loadstone.cli.screen import Screen
    from loadstone.cli.terms import order
    from loadstone.keystone import deployment
    from loadstone.report import html
    from loadstone.run import run

    terms: Terms = {
        "budget_s": budget_s,
        "max_rate_rps": 5000.0,
        "users": USERS,
        "method": METHOD,
        "objective": (),
        "max_connections": 256,
        "curve_s": 0.0,
        "cores": (),
    }
    wanted = order("demo", ("issue", "validate"), terms)
    with open_store(folder) as store, Screen() as screen:
        keystone = deployment.up(NAME, deployment.Settings(), screen.say, owned=True)
        try:
            with of_deployment(keystone) as subject:
                result = run(wanted, subject, store, screen, command_line())
        finally:
            deployment.down(NAME)
        show(result, None)
        path = store.folder(result.run_id) / "report.html"
        code = exit_code(store, result)
        html.write(result, lambda trial: store.samples(result.run_id, trial), path)
    click.echo(path)
    ctx.exit(code)
