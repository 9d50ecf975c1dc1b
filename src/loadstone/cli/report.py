"""`loadstone report`: runs as one HTML page, or in a form that other programs read."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone import files
from loadstone.cli.stored import STORE, open_store
from loadstone.errors import InvalidInput

if TYPE_CHECKING:
    from loadstone.result import Result
    from loadstone.store import Store

STDOUT = Path("-")


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file to write; - is stdout. HTML of one run goes to report.html in its folder "
    "otherwise.",
)
@click.option(
    "--as",
    "form",
    type=click.Choice(["html", "junit", "openmetrics", "rally-json"]),
    default="html",
    show_default=True,
    help="junit is for CI servers, openmetrics for Prometheus' textfile collector.",
)
@STORE
def report(runs: tuple[str, ...], output: Path | None, form: str, folder: Path | None) -> None:
    """Write the report of RUN (an id, the beginning of one, or "latest") and print its path.

    The HTML page holds everything: it asks nothing of any network and can be sent as it is.
    Several runs stand in one page, or one --as rally-json.
    """
    from loadstone.report import html

    with open_store(folder) as store:
        results = [store.get(run) for run in runs or ("latest",)]
        _require_one(results, form, output)
        if form == "html" and output != STDOUT:
            path = output or store.folder(results[0].run_id) / "report.html"
            html.write_runs(
                [(result, partial(store.samples, result.run_id)) for result in results], path
            )
            click.echo(path)
            return
        text = _text(store, results, form)
    if output is None or output == STDOUT:
        click.echo(text, nl=False)
        return
    files.write(output, text)
    click.echo(output)


def _require_one(results: "list[Result]", form: str, output: Path | None) -> None:
    if len(results) == 1 or form == "rally-json":
        return
    if form != "html":
        raise InvalidInput(f"--as {form} takes one run, not {len(results)}")
    if output is None:
        raise InvalidInput("say with -o FILE where the page of several runs goes")


def _text(store: "Store", results: "list[Result]", form: str) -> str:
    from loadstone.report import html, junit, openmetrics, rally_json

    match form:
        case "junit":
            return junit.render(results[0])
        case "openmetrics":
            return openmetrics.render(results[0])
        case "rally-json":
            every = [
                rally_json.as_rally(one, partial(store.samples, one.run_id)) for one in results
            ]
            data = every[0] | {"tasks": [task for one in every for task in one["tasks"]]}
            return json.dumps(data, indent=1, allow_nan=False) + "\n"
        case _:
            return html.render_runs([(one, partial(store.samples, one.run_id)) for one in results])
