"""`loadstone report`: one run as one HTML page."""

from pathlib import Path

import click

from loadstone.cli.stored import STORE, open_store


@click.command()
@click.argument("run", default="latest")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write (default: report.html in the run's folder).",
)
@STORE
def report(run: str, output: Path | None, folder: Path | None) -> None:
    """Write the HTML report of RUN (an id, the beginning of one, or "latest") and print its path.

    The page holds everything: it asks nothing of any network and can be sent as it is.
    """
    from loadstone.report import html

    with open_store(folder) as store:
        result = store.get(run)
        path = output or store.folder(result.run_id) / "report.html"
        html.write(result, lambda trial: store.samples(result.run_id, trial), path)
    click.echo(path)
