"""`loadstone study`: one measurement of many deployments, in one table."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from loadstone.cli.choose import PERMISSION, TAG, backend_of, refuse_given
from loadstone.cli.dry_run import DRY_RUN, show_dry_run
from loadstone.cli.generator import FleetOptions, fleet_of, fleet_options
from loadstone.cli.output import command_line, print_report, write_formats
from loadstone.cli.stored import (
    JSON,
    STDOUT,
    STORE,
    OutputFile,
    is_stdout_free,
    open_store,
    open_to_read,
    write,
)
from loadstone.cli.watching import require_possible, watching, watching_options
from loadstone.system.paths import existing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.report.section import Report
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store
    from loadstone.study.journal import StudyJournal
    from loadstone.workload.preview import RunPreview

QUICK = click.option("--quick", is_flag=True, help="Use the study's shorter form, if it has one.")
SEED = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    help="Random seed of the order of cells.",
)


class StudyShowOptions(TypedDict):
    """The values of the options of `study show`."""

    name: str
    quick: bool
    seed: int
    location: "StoreLocation"
    to: Path | None
    markdown: bool
    page: Path | None
    csv: Path | None


class StudyRunOptions(FleetOptions):
    """The values of the options of `study run`."""

    name: str | None
    quick: bool
    seed: int
    resume: str | None
    yes: bool
    is_dry: bool
    tags: tuple[tuple[str, str], ...]
    location: "StoreLocation"
    to: Path | None


@click.group()
def study() -> None:
    """Measure many Keystone configurations, one after the other or on several lab hosts."""


@study.command("list")
@STORE
def list_(location: "StoreLocation") -> None:
    """List the built-in studies, and the studies that have been started."""
    from loadstone.study import journal, read
    from loadstone.study.show import describe_builtin, describe_started

    for name in read.builtin():
        click.echo(describe_builtin(read.find(name)))
    for study_id in journal.ids(location):
        click.echo(describe_started(location, study_id))


@study.command()
@click.argument("name", metavar="NAME|FILE|ID")
@QUICK
@SEED
@STORE
@JSON
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option(
    "--html",
    "page",
    type=OutputFile(),
    metavar="FILE",
    help="Write an HTML page with the table, charts and the runs of each cell.",
)
@click.option(
    "--csv", type=OutputFile(), help="Write CSV with one line per repeat of each cell and step."
)
def show(**options: Unpack[StudyShowOptions]) -> None:
    """Show a study's cells, order and duration, or the results of a started study (ID)."""
    from loadstone.report.console import console
    from loadstone.study import read
    from loadstone.study.show import plan

    begun = _started(options["name"], options["location"])
    if begun is not None:
        why = "does not go with the ID of a study: it began with its own"
        refuse_given(click.get_current_context(), ("quick", "seed"), why)
        _show_results(begun, options)
        return
    found = read.find(options["name"]).study(quick=options["quick"])
    if any((options["markdown"], options["page"], options["csv"], options["to"])):
        raise click.UsageError(
            "--markdown, --html, --csv and --json show results: name a study by its ID"
        )
    plan(found, options["seed"], console())


def _show_results(begun: "StudyJournal", options: StudyShowOptions) -> None:
    """Write what was measured in each form that is asked for; without a file, print the table."""
    from loadstone.study.outcomes import outcomes, ratios
    from loadstone.study.section import report_of

    page, csv, to = options["page"], options["csv"], options["to"]
    is_free = is_stdout_free(page, csv, to)
    if options["markdown"] and not is_free:
        raise click.UsageError("--markdown prints to stdout: name files in the place of -")
    with open_to_read(options["location"]) as store:
        ended, in_turns = tuple(outcomes(begun, store)), tuple(ratios(begun, store))
    report = report_of(begun, ended, in_turns)
    if page is not None:
        from loadstone.report import html

        write(html.render(report), page)
        if is_free and not options["markdown"]:
            click.echo(page)
    if csv is not None:
        from loadstone.study import raw

        write(raw.render(begun, ended), csv)
    is_free = write_formats(report, to, markdown=STDOUT if options["markdown"] else None)
    if is_free and page is None and csv is None:
        print_report(report)


@study.command()
@click.argument("name", metavar="[NAME|FILE]", required=False)
@QUICK
@SEED
@click.option("--resume", metavar="ID", help="Continue a study that has been started.")
@fleet_options
@PERMISSION
@TAG
@DRY_RUN
@watching_options
@STORE
@JSON
@click.pass_context
def run(ctx: click.Context, **options: Unpack[StudyRunOptions]) -> None:
    """Measure each cell of a study and print the table. Ctrl-C keeps what was measured.

    Exit code 0 if every cell was measured, else the worst exit code of its measurements, or 4 if
    one was not made; 70 after an internal error.
    """
    from loadstone.study import needs, read
    from loadstone.study.run import StudyOptions, run_study

    if (options["name"] is None) == (options["resume"] is None):
        raise click.UsageError("give NAME|FILE, or --resume ID")
    if options["resume"] is not None:
        why = "does not go with --resume: the study began with its own"
        refuse_given(ctx, ("quick", "seed"), why)
    if options["is_dry"]:
        show_dry_run(tuple(_previews(options)), options["to"])
        return
    require_possible()  # a mistake begins no study
    fleet = fleet_of(options)
    if options["name"] is not None and fleet is None and backend_of(ctx).is_real:
        needs.require(read.find(options["name"]).study(quick=options["quick"]))
    with open_store(options["location"]) as store:
        journal = _journal(options)
        try:
            of_study = partial(_reports, journal, store)
            with watching(backend_of(ctx), store, of_study) as display:
                display.say(f"study {journal.study_id}")
                tags = options["tags"] or journal.begun.tags
                chosen = StudyOptions(fleet, options["yes"], tags)
                started, backend = journal.with_secrets(), backend_of(ctx)
                run_study(started, store, display, command_line(), chosen, backend)
        finally:
            [report] = _reports(journal, store, is_over=True)
            if write_formats(report, options["to"]):
                print_report(report)
        ctx.exit(report.exit_code)


def _reports(journal: "StudyJournal", store: "Store", *, is_over: bool) -> "Sequence[Report]":
    """Return the study with the cells that are measured so far."""
    from loadstone.study.outcomes import outcomes, ratios
    from loadstone.study.section import report_of

    report = report_of(journal, tuple(outcomes(journal, store)), tuple(ratios(journal, store)))
    return (report if is_over else replace(report, title=f"{report.title}: results so far"),)


def _previews(options: StudyRunOptions) -> "Iterator[RunPreview]":
    """Yield the preview of each cell; of a study to resume, also of what it has measured."""
    from loadstone.compare.measure import run_config
    from loadstone.study import journal, read
    from loadstone.study.cell import config_of
    from loadstone.study.duet import cell_pairs, comparison_of
    from loadstone.study.order import turns
    from loadstone.workload.preview import preview

    fleet = fleet_of(options)
    if options["resume"] is not None:
        begun = journal.find(options["location"], options["resume"]).with_secrets()
        study, seed = begun.begun.study(), begun.begun.seed
    else:
        study = read.find(str(options["name"])).study(quick=options["quick"])
        seed = options["seed"]
    for turn in turns(study, seed):
        if turn.repeat == 1:
            found = preview(replace(config_of(study, "dry-run", turn, ""), fleet=fleet))
            [target] = found.targets
            chosen = replace(target, chosen=f"{turn.cell}: {target.chosen}")
            yield replace(found, targets=(chosen,), times=study.repeats)
    for pair in cell_pairs(study) if fleet is None else ():
        config = comparison_of(study, "dry-run", pair, "")
        found = preview(run_config(config, 0, lambda _: None), (config.sides[1].target,))
        targets = tuple(
            replace(target, chosen=f"{cell}, in turns: {target.chosen}")
            for cell, target in zip((pair.base, pair.other), found.targets, strict=True)
        )
        yield replace(found, targets=targets)


def _journal(options: StudyRunOptions) -> "StudyJournal":
    """Return the journal of the study to resume, or create that of a new study."""
    from loadstone.study import journal, read

    store = options["location"]
    if options["resume"] is not None:
        return journal.find(store, options["resume"])
    source = read.find(str(options["name"]))
    source.study(quick=options["quick"])  # an invalid study does not begin
    return journal.begin(
        store, source, quick=options["quick"], seed=options["seed"], tags=options["tags"]
    )


def _started(name: str, store: "StoreLocation") -> "StudyJournal | None":
    """Return the started study with this id or prefix; None for the name or file of a study."""
    from loadstone.study import journal, read

    is_plan = name in read.builtin() or existing(name) is not None
    is_id = any(one.startswith(name) for one in journal.ids(store))
    return journal.find(store, name) if is_id and not is_plan else None
