"""`loadstone report`: one run as one HTML page, or in a form that other programs read."""

import json
from pathlib import Path

import click

from loadstone.cli.stored import STORE, open_store
from loadstone.errors import EnvironmentUnusable

STDOUT = Path("-")


@click.command()
@click.argument("run", default="latest")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file to write; - is stdout. HTML goes to report.html in the run's folder otherwise.",
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
def report(run: str, output: Path | None, form: str, folder: Path | None) -> None:
    """Write the report of RUN (an id, the beginning of one, or "latest") and print its path.

    The HTML page holds everything: it asks nothing of any network and can be sent as it is.
    """
    from loadstone.report import html, junit, openmetrics, rally_json

    with open_store(folder) as store:
        result = store.get(run)
        if form == "html" and output != STDOUT:
            path = output or store.folder(result.run_id) / "report.html"
            html.write(result, lambda trial: store.samples(result.run_id, trial), path)
            click.echo(path)
            return
        match form:
            case "junit":
                text = junit.render(result)
            case "openmetrics":
                text = openmetrics.render(result)
            case "rally-json":
                data = rally_json.as_rally(result, lambda one: store.samples(result.run_id, one))
                text = json.dumps(data, indent=1, allow_nan=False) + "\n"
            case _:
                text = html.render(result, lambda trial: store.samples(result.run_id, trial))
    if output is None or output == STDOUT:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot write {output}: {problem.strerror}") from problem
    click.echo(output)
