"""`loadstone demo`: measures a real Keystone, from installation to report."""

from functools import partial
from typing import TYPE_CHECKING

import click

from loadstone.cli.choose import TAG, UNDONE_ANYWAY, backend_of
from loadstone.cli.dry_run import DRY_RUN, show_dry_config
from loadstone.cli.duration import Duration
from loadstone.cli.output import carry_out, command_line, print_report, report_of_stored
from loadstone.cli.stored import STORE, open_store
from loadstone.cli.watching import watching_options

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
    help="Maximum load time of each of the two searches.",
)
@UNDONE_ANYWAY
@TAG
@DRY_RUN
@watching_options
@STORE
@click.pass_context
def demo(
    ctx: click.Context,
    budget_s: float,
    location: "StoreLocation",
    tags: tuple[tuple[str, str], ...],
    *,
    anyway: bool,
    is_dry: bool,
) -> None:
    """Install and measure a real Keystone on this machine: token issue and token validation.

    Installs Keystone 30.0.0 into an environment of its own, serves it on loopback with one worker
    per core, measures it and stops it. Prints the path of the HTML report last. A range of N
    counts as an answer here.
    """
    from loadstone.lab.keystone.settings import LabSettings
    from loadstone.report import html
    from loadstone.target.choice import OwnLab
    from loadstone.workload.capacity import SearchTerms, by_name, search_group
    from loadstone.workload.model import RunConfig

    searched = [by_name(name, USERS) for name in ("issue", "validate")]
    config = RunConfig(
        kind="demo",
        target=OwnLab(NAME, LabSettings(), anyway=anyway),
        groups=(search_group(searched, SearchTerms(budget_s=budget_s, accepts_range=True)),),
        command=command_line(),
        tags=tags,
    )
    if is_dry:
        show_dry_config(config, None)
        return
    with open_store(location) as store:
        result, report = carry_out(
            config, backend_of(ctx), store, lambda _, found: print_report(found)
        )
        path = store.folder(result.run_id) / "report.html"
        page = report_of_stored(store, result, partial(store.samples, result.run_id))
        html.write((page,), path)
    click.echo(path)
    ctx.exit(report.exit_code)
