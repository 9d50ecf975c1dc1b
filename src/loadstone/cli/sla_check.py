"""`loadstone results sla-check RUN`: the SLA rules of a task."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.stored import JSON, STORE, open_to_read, show_notices, write_json
from loadstone.errors import FELL_SHORT, InvalidInput, MeasurementInvalid

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation

MOST_CODE = 100  # exit codes above 125 have special meanings in shells


@click.command("sla-check")
@click.argument("run", default="latest")
@STORE
@JSON
@click.option(
    "--exit-code-style",
    "style",
    type=click.Choice(["loadstone", "rally"]),
    default="loadstone",
    help="rally: the exit code is the number of rules that failed.",
)
@click.pass_context
def sla_check(
    ctx: click.Context, run: str, location: "StoreLocation", to: Path | None, style: str
) -> None:
    """Show which SLA rules of the task RUN (an id, its beginning, or "latest") held.

    Exit code 0 if all held, 1 if one did not, 2 if RUN is not a task, 4 if all held but RUN did
    not end, or nothing was measured, 70 after an internal error.
    """
    from loadstone.report import sla
    from loadstone.report.console import wide

    with open_to_read(location) as store:
        result = store.get(run)
    rows = sla.rows(result)
    if not rows and result.kind == "task" and result.status != "finished":
        raise MeasurementInvalid(f"run {result.run_id} has not ended a load, so no rule is decided")
    if not rows and result.kind != "task":
        raise InvalidInput(f"run {result.run_id} has no SLA: it is not a task")
    if to is not None:
        write_json([sla.as_data(row) for row in rows], to)
    else:
        wide().print(sla.table(rows))
    failed = sum(not row.rule.success for row in rows)
    is_whole = result.status == "finished"
    if not is_whole:
        show_notices([f"run {result.run_id} did not end: these are the rules of what it measured"])
    if style == "rally":
        ctx.exit(min(failed, MOST_CODE))
    undecided = 0 if is_whole else MeasurementInvalid.exit_code
    ctx.exit(FELL_SHORT if failed else undecided)
