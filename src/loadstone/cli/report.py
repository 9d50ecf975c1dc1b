"""`loadstone report`: runs as one HTML page, or in a format for other programs."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.output import report_of_stored
from loadstone.cli.stored import (
    STDOUT,
    STORE,
    OutputFile,
    open_to_read,
    require_each_once,
    show_notices,
    write,
)
from loadstone.errors import EnvironmentUnusable, InvalidInput, MeasurementInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.analysis.model import Trial
    from loadstone.engine.samples import Samples
    from loadstone.report.section import Report
    from loadstone.result.model import Run
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help="File to write; - is stdout. By default, the HTML page of one run is written to "
    "report.html in the run's folder.",
)
@click.option(
    "--as",
    "form",
    type=click.Choice(["html", "markdown", "junit", "openmetrics", "rally-json"]),
    default="html",
    help="Format. markdown is for merge requests, junit for CI servers, openmetrics for "
    "Prometheus' textfile collector.",
)
@click.option(
    "--open",
    "is_opened",
    is_flag=True,
    help="Open the HTML page in the browser that BROWSER or the desktop names.",
)
@STORE
def report(
    runs: tuple[str, ...],
    output: Path | None,
    form: str,
    location: "StoreLocation",
    *,
    is_opened: bool,
) -> None:
    """Write the report of RUN (an id, the beginning of one, or "latest") and print its path.

    The HTML page is self-contained: it loads nothing from the network. Several runs are written to
    one page, or to one file with --as rally-json. The page of two runs begins with their
    comparison, and so does the page of either side of `compare` and `prove`.
    """
    from loadstone.report import html

    if is_opened and (form != "html" or output == STDOUT):
        raise click.UsageError("--open shows an HTML page in a file: no --as, and no -o -")
    with open_to_read(location) as store:
        results = [store.get(run) for run in runs or ("latest",)]
        _require_one(results, form, output)
        page = store.folder(results[0].run_id) / "report.html"
        path = output or (page if form == "html" else STDOUT)
        shared: list[Report] = []
        if form == "html":
            results, shared = _compared(store, results)
        _look_for_files(store, results, form, output)
        if form == "html":
            text = html.render(*shared, *_reports(store, results))
        else:
            text = _text(store, results, form)
    write(text, path)
    if path != STDOUT:
        click.echo(path)
    if is_opened:
        _open(path)


def _open(path: Path) -> None:
    """Show a page; say so if there is no browser, as on a server."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        click.echo("loadstone: no browser can be started here; open the page yourself", err=True)


def _reports(store: "Store", results: "list[Run]") -> "Iterator[Report]":
    """Yield the report of each run with its charts; say which samples cannot be read."""
    for number, result in enumerate(results, 1):
        prefix = f"run-{number}-" if number > 1 else ""
        unread: dict[str, None] = {}
        samples_of = partial(_samples, store, result.run_id, unread)
        yield report_of_stored(store, result, samples_of, prefix)
        show_notices(f"without a chart of samples: {why}" for why in unread)


def _samples(store: "Store", run_id: str, unread: dict[str, None], trial: "Trial") -> "Samples":
    """Return the samples of a trial; add why they cannot be read to `unread`."""
    try:
        return store.samples(run_id, trial)
    except EnvironmentUnusable as why:
        # Without its folder, all files of the run are elsewhere, which is said before.
        if trial.samples_file is not None and store.folder(run_id).is_dir():
            unread[str(why)] = None
        raise


def reports_of(store: "Store", runs: "Sequence[str]", *, reads_samples: bool) -> "Sequence[Report]":
    """Return the reports that a page shows of these runs, and of two sides their comparison.

    Without reading samples, there is no comparison and there are no charts of single requests.
    """
    from loadstone.live.results import so_far

    results = [store.get(run) for run in runs]
    shared: list[Report] = []
    if not reads_samples:
        return tuple(
            so_far(one, report_of_stored(store, one, _unread, f"run-{number}-"))
            for number, one in enumerate(results, 1)
        )
    if len(results) == 2:
        results, shared = _compared(store, results)
    return (*shared, *_reports(store, results))


def _unread(trial: "Trial") -> "Samples":
    raise EnvironmentUnusable(f"the samples of trial {trial.number} are not read")


def _compared(store: "Store", results: "list[Run]") -> "tuple[list[Run], list[Report]]":
    """Return the runs of a page, and the report of their comparison if they are two.

    A run that is one side of a comparison is shown with the other side.
    """
    from loadstone.compare.section import report_of
    from loadstone.compare.stored import other_side, recorded

    try:
        if len(results) == 1 and (sides := other_side(results[0], store)) is not None:
            results = list(sides)
        if len(results) != 2:
            return results, []
        found = recorded(results[0], results[1], store.samples)
    except (InvalidInput, MeasurementInvalid):  # no scenario in common, or no complete pair
        return results, []
    except EnvironmentUnusable as missing:  # the other run, or samples of loads in turns
        click.echo(f"loadstone: without the comparison: {missing}", err=True)
        return results, []
    return results, [report_of(found, store.location.option)]


def _require_one(results: "list[Run]", form: str, output: Path | None) -> None:
    require_each_once([result.run_id for result in results])
    for result in results if form == "rally-json" else ():
        if not result.workloads:
            raise InvalidInput(
                f"run {result.run_id} is not a task ({result.kind}), and Rally's format is for "
                "tasks; use --as html, junit or openmetrics"
            )
    if len(results) == 1 or form == "rally-json":
        return
    if form != "html":
        raise InvalidInput(f"--as {form} takes one run, not {len(results)}")
    if output is None:
        raise InvalidInput("the page of several runs needs -o FILE")


def _look_for_files(store: "Store", results: "list[Run]", form: str, output: Path | None) -> None:
    """Raise if the format needs samples that are on another machine; a page omits its charts."""
    for result in results if form in ("html", "rally-json") else ():
        try:
            store.require_files(result.run_id)
        except EnvironmentUnusable as elsewhere:
            if form == "rally-json" or output is None:
                raise
            click.echo(f"loadstone: without the charts of samples: {elsewhere}", err=True)


def _text(store: "Store", results: "list[Run]", form: str) -> str:
    from loadstone.rally import export
    from loadstone.report import junit, markdown, openmetrics

    match form:
        case "junit":
            return junit.render(report_of_stored(store, results[0]))
        case "markdown":
            return markdown.render(report_of_stored(store, results[0]))
        case "openmetrics":
            return openmetrics.render(results[0])
        case "rally-json":
            lost: list[str] = []
            every = [
                export.as_rally(one, partial(store.samples, one.run_id), lost.append)
                for one in results
            ]
            show_notices(lost)
            data = every[0] | {"tasks": [task for one in every for task in one["tasks"]]}
            return json.dumps(data, indent=1, allow_nan=False) + "\n"
        case _:
            raise AssertionError(f"{form} is not a text of this function")
