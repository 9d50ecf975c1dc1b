"""`loadstone tune`: which settings lift it?"""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from loadstone.cli.choose import ARGUMENT, PERMISSION, UNDONE_ANYWAY, backend_of, once, refuse_given
from loadstone.cli.dry_run import DRY_RUN, show_dry_run
from loadstone.cli.duration import Number, Span
from loadstone.cli.output import command_line, print_report, write_formats
from loadstone.cli.stored import JSON, STORE, OutputFile, is_stdout_free, open_store, write
from loadstone.cli.watching import watching, watching_options
from loadstone.keystone.scenarios import SCENARIOS

if TYPE_CHECKING:
    from loadstone.report.section import Report
    from loadstone.run.backend import Backend
    from loadstone.store.location import StoreLocation
    from loadstone.tune.commands import ChangeCommands
    from loadstone.tune.journal import BegunTuning, TuningJournal
    from loadstone.tune.space import Pairs, Space

PAIR_OVERHEAD_S = 1.0  # between two trials: samples are written and read
CHANGE_S = 5.0  # of a cloud, until it was measured
BUILT_IN = "lab"  # space
# Options that a tuning keeps from its beginning.
_OF_BEGINNING = (
    *("lab", "changes", "kept", "space", "cloud", "apply", "revert", "scenario", "given"),
    *("objective", "budget_s", "with_trades", "users", "concurrency", "seconds", "seed"),
)


class TuneOptions(TypedDict):
    """The values of the options."""

    lab: str | None
    cloud: str | None
    apply: str | None
    revert: str | None
    may_change: bool
    yes: bool
    changes: tuple[str, ...]
    kept: tuple[str, ...]
    space: str
    scenario: str
    given: tuple[str, ...]
    objective: str
    budget_s: float
    with_trades: bool
    users: int
    concurrency: int
    seconds: float
    seed: int
    resume: str | None
    anyway: bool
    is_dry: bool
    location: "StoreLocation"
    to: Path | None
    markdown: Path | None
    page: Path | None


@click.command()
@click.option("--lab", metavar="NAME", help="Lab deployment whose settings are the default.")
@click.option(
    "--with",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting of the default, as of `loadstone lab up`; may be repeated. With --apply: the "
    "value of a variable that the service has now.",
)
@click.option(
    "--keep",
    "kept",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting of the default that is not changed; may be repeated.",
)
@click.option(
    "--space",
    metavar="NAME|FILE",
    default=BUILT_IN,
    help="Settings to search, with their levels: a built-in space or a YAML file.",
)
@once("--cloud", metavar="NAME", instead_of="lab", help="Cloud whose settings --apply changes.")
@click.option(
    "--apply",
    metavar="COMMAND",
    help="Shell command that applies the settings in its environment to the cloud.",
)
@click.option(
    "--revert",
    metavar="COMMAND",
    help="Shell command that puts back all settings of the cloud.",
)
@click.option(
    "--yes-change-this-target",
    "may_change",
    is_flag=True,
    help="Permit --apply and --revert to change this target.",
)
@once(
    "--scenario",
    default="issue",
    help=f"{', '.join(sorted(SCENARIOS))}; a mix; or a scenario of task files.",
)
@ARGUMENT
@click.option(
    "--objective",
    type=click.Choice(["N", "cpu", "p99"]),
    default="N",
    help="Figure to improve: throughput of a full service, which determines N; CPU per request; "
    "or p99 latency.",
)
@click.option(
    "--budget",
    "budget_s",
    type=Span(),
    default="1h",
    metavar="TIME",
    help="Time for everything, including starting deployments.",
)
@click.option(
    "--with-trades",
    is_flag=True,
    help="Also measure settings that lower security or correctness. They are listed separately, "
    "never as a gain.",
)
@click.option(
    "--users",
    type=click.IntRange(0, 10_000),
    default=10,
    help="Users to create on each deployment.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(2, 10_000),
    default=8,
    help="Iterations in flight.",
)
@click.option(
    "--seconds",
    type=Number(1.0, 600.0),
    default=3.0,
    help="Duration of each pair of trials, longer if the service is slow. With --apply: of each "
    "trial, and of the warm-up before it.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    help="Random seed of the search.",
)
@click.option("--resume", metavar="ID", help="Continue a tuning, or show a finished one.")
@click.option(
    "--html",
    "page",
    type=OutputFile(),
    metavar="FILE",
    help="Write an HTML page with all trials.",
)
@click.option("--markdown", type=OutputFile(), help="Write Markdown.")
@PERMISSION
@UNDONE_ANYWAY
@DRY_RUN
@watching_options
@STORE
@JSON
@click.pass_context
def tune(ctx: click.Context, **options: Unpack[TuneOptions]) -> None:
    """Search for settings that lift a service, and prove the gain.

    Compares combinations of settings with the default, in turns, and keeps the better ones. The
    best is then compared with the default again, in new pairs: only this gain is stated. Settings
    that contribute nothing to it are dropped. Creates two deployments for each
    comparison and removes them; with --apply, changes a cloud before each trial instead.

    \b
    loadstone tune --lab demo --scenario validate --budget 2h
    loadstone tune --with database=mariadb --keep web=uwsgi --with-trades
    loadstone tune --cloud mine --space mine.yaml --apply ./apply.sh --revert ./revert.sh \\
        --yes-change-this-target
    loadstone tune --resume 20261125-2012-a1b2c3

    Exit code 0 with an answer, also if no gain was shown; 1 if something that a run
    created could not be removed; 2 for an invalid space or too small a budget; 3 if the default
    does not start; 4 if no combination could be measured, or the first comparison took too much of
    the budget; 70 after an internal error.
    """
    from loadstone.tune import journal as journals
    from loadstone.tune.space import require_unset

    if options["resume"] is not None:
        refuse_given(ctx, _OF_BEGINNING, "does not go with --resume: the tuning began with its own")
        found = journals.find(options["location"], options["resume"])
        if options["is_dry"]:
            _show_dry_run(found.begun, options["to"])
            return
        if found.begun.commands is not None and found.result is None:
            require_unset(found.begun.space, os.environ)
            found = replace(found, begun=_permitted(found.begun, options))
    else:
        begun = _begun(options)
        if options["is_dry"]:
            _show_dry_run(begun, options["to"])
            return
        begun = _permitted(begun, options)
        found = journals.begin(options["location"], begun)
    report = _report(found, options["location"], backend_of(ctx))
    ctx.exit(_show(report, options))


def _permitted(begun: "BegunTuning", options: TuneOptions) -> "BegunTuning":
    """Return the tuning with what the user permits now; InvalidInput if its load is not permitted.

    A resumed tuning may be permitted more than when it began.
    """
    from loadstone.cloud.permission import require_permission
    from loadstone.target.choice import cloud_of

    commands = begun.commands
    if commands is None:
        return begun
    permitted = options["yes"] or commands.beyond_loopback
    require_permission(cloud_of(commands.target), permitted)
    now = replace(commands, beyond_loopback=permitted, anyway=options["anyway"])
    return replace(begun, commands=now)


def _begun(options: TuneOptions) -> "BegunTuning":
    """Return the tuning that the options ask for; InvalidInput if it cannot prove anything."""
    from loadstone.compare.measure import ALONE_S
    from loadstone.errors import InvalidInput
    from loadstone.tune.journal import BegunTuning, ComparisonLoad
    from loadstone.tune.measured import DEFAULT_BESIDE_ITSELF, config_of
    from loadstone.tune.model import TuningObjective
    from loadstone.tune.suggest import suggestions

    commands = _commands(options)
    space, kept = _space(options) if commands is None else _space_of_variables(options)
    pair_s = options["seconds"] + ALONE_S + PAIR_OVERHEAD_S
    if commands is not None:
        pair_s = 2 * (2 * options["seconds"] + CHANGE_S) + PAIR_OVERHEAD_S
    begun = BegunTuning(
        space_name=options["space"],
        space=space,
        kept=kept,
        suggested=suggestions(space, os.cpu_count() or 1) if commands is None else (),
        load=ComparisonLoad(
            options["scenario"],
            options["given"],
            options["users"],
            options["concurrency"],
            options["seconds"],
        ),
        objective=TuningObjective(options["objective"]),
        budget_s=options["budget_s"],
        seed=options["seed"],
        with_trades=options["with_trades"],
        command=command_line(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        pair_s=pair_s,
        commands=commands,
    )
    _require_time(begun)
    # A wrong scenario is refused before it begins.
    if config_of(begun, "", DEFAULT_BESIDE_ITSELF).searched.secrets:
        raise InvalidInput("--arg: a secret would be kept in the tuning's journal; leave it out")
    return begun


def _space(options: TuneOptions) -> "tuple[Space, Pairs]":
    """Return the space with the settings of the default, and those that are kept."""
    from loadstone.errors import InvalidInput
    from loadstone.lab.keystone import settings
    from loadstone.system.redaction import is_secret_option, masked
    from loadstone.tune import space

    kept = [settings.split(pair) for pair in options["kept"]]
    pairs = [*_of_lab(options), *(settings.split(pair) for pair in options["changes"]), *kept]
    default = settings.read(pairs)
    if default.service is not settings.Service.KEYSTONE:
        raise InvalidInput(f"service={default.service}: only settings of a Keystone are searched")
    known = tuple(one for one in default.pairs() if one[0] not in settings.OF_ITS_OWN)
    for key, value in known:
        if (key.startswith("conf.") and is_secret_option(key)) or masked(value) != value:
            raise InvalidInput(
                f"{key}: a secret would be kept in the tuning's journal; leave it out"
            )
    return space.find(options["space"], known, tuple(kept)), tuple(kept)


def _commands(options: TuneOptions) -> "ChangeCommands | None":
    """Return the commands that change a cloud; None if combinations are labs."""
    cloud, apply, revert = options["cloud"], options["apply"], options["revert"]
    if cloud is None and apply is None and revert is None:
        return None
    if options["lab"] is not None:
        raise click.UsageError("give --lab NAME or a cloud with --apply and --revert, not both")
    if cloud is None:
        raise click.UsageError("--apply and --revert change a cloud: add --cloud NAME")
    if apply is None or revert is None:
        raise click.UsageError(
            f"--cloud {cloud} is changed by commands: add --apply COMMAND and --revert COMMAND"
        )
    if options["space"] == BUILT_IN:
        raise click.UsageError(
            "the built-in space has settings of the lab: add --space FILE with the variables that "
            "--apply reads"
        )
    if not options["may_change"]:
        raise click.UsageError(
            f"--apply changes cloud {cloud} on purpose; if that is meant, add "
            "--yes-change-this-target"
        )
    from loadstone.target.choice import cloud_of
    from loadstone.tune.commands import ChangeCommands

    commands = ChangeCommands(cloud, apply, revert, options["yes"], options["anyway"])
    commands.require_kept()
    cloud_of(commands.target)  # an unknown one is refused before it begins
    return commands


def _space_of_variables(options: TuneOptions) -> "tuple[Space, Pairs]":
    """Return the space of a cloud's settings, and those that are kept."""
    from loadstone.lab.keystone import settings
    from loadstone.tune import space

    kept = tuple(settings.split(pair) for pair in options["kept"])
    default = (*(settings.split(pair) for pair in options["changes"]), *kept)
    for name, _ in default:
        space.require_variable(name)
    known = tuple(dict(default).items())
    found = space.find(options["space"], known, kept, is_of_lab=False)
    space.require_unset(found, os.environ)
    return found, kept


def _of_lab(options: TuneOptions) -> "Pairs":
    from loadstone.cli.prove import require_lab_undone
    from loadstone.lab import deployment
    from loadstone.lab.keystone import settings

    if options["lab"] is None:
        return ()
    known = deployment.load(options["lab"]).state.last.settings
    require_lab_undone(options["lab"], anyway=options["anyway"])
    return tuple(pair for pair in known if pair[0] not in settings.OF_ITS_OWN)


def _require_time(begun: "BegunTuning") -> None:
    from loadstone.errors import InvalidInput
    from loadstone.report import figures
    from loadstone.tune.budget import least_s

    least = least_s(begun.terms)
    if begun.budget_s < least:
        minutes = int(least // 60) + 1
        raise InvalidInput(
            f"--budget {figures.seconds(begun.budget_s)} is too short to prove a gain: the "
            "default, two combinations and one proof take about "
            f"{figures.seconds(least)}; give --budget {minutes}m or more"
        )


def _report(found: "TuningJournal", location: "StoreLocation", backend: "Backend") -> "Report":
    """Carry out a tuning, or what is left of it."""
    from loadstone.report.sections.left import with_left
    from loadstone.run.exit_code import left_by
    from loadstone.tune.measured import RealMeasure
    from loadstone.tune.section import Shown, report_of
    from loadstone.tune.tuning import tune

    begun, known, option = found.begun, found.result, location.option
    if known is not None:
        left = left_by(location, found.runs)
        return with_left(report_of(Shown(known, found, option)), left, option)
    with found.locked(), open_store(location) as store, watching(backend, store) as display:
        display.say(f"tuning {found.tuning_id}; --resume {found.tuning_id} goes on with it")
        measure = found.recorded(RealMeasure(found, store, display, backend))
        tuned = tune(
            begun.space,
            begun.terms,
            begun.suggested,
            measure,
            lambda line: display.say(f"tune: {line}"),
        )
        found.end(tuned)
        left = left_by(location, (*found.runs, *display.state.run_ids))
    return with_left(report_of(Shown(tuned, found, option)), left, option)


def _show_dry_run(begun: "BegunTuning", to: Path | None) -> None:
    """Print the space, and what one of its comparisons would send."""
    from loadstone.compare.measure import run_config
    from loadstone.report import figures
    from loadstone.tune.budget import ComparisonDurations, combinations
    from loadstone.tune.measured import DEFAULT_BESIDE_ITSELF, config_of, search_of
    from loadstone.workload.preview import preview

    config = config_of(begun, "dry-run", DEFAULT_BESIDE_ITSELF)
    run = run_config(config, 0, lambda _measure: None)
    # Both sides are the same cloud, changed in between, or a lab each.
    others = () if begun.commands is not None else (config.sides[1].target,)
    # The budget bounds all comparisons; the load is that of the first.
    previews = [replace(preview(run, others), seconds_at_most=begun.budget_s)]
    costs, space = ComparisonDurations(begun.terms), begun.space
    said = "The load is that of the first comparison, of the default with itself; others follow."
    if costs.capacities_s > 0:
        previews.append(replace(preview(search_of(begun, "dry-run", "a", ())), times=2))
        said = (
            "The first load is that of the first comparison, of the default with itself; others "
            "follow. After a gain, N of both combinations is searched."
        )
    show_dry_run(previews, to)
    if not is_stdout_free(to):
        return
    click.echo(f"\n{said}\n")
    for one in (*space.settings, *(space.trades if begun.with_trades else ())):
        choices = space.choices(one, space.values(()))
        levels = ", ".join("the default" if level is None else level for level in choices)
        shown = levels if len(choices) > 1 else f"only where {_conditions(one.when)}"
        click.echo(f"{one.kind.value:10} {one.name}: {shown}")
    most = space.combinations - 1  # beside the default
    count = min(combinations(costs, begun.budget_s / 2), most)
    click.echo(
        f"about {count} combinations of {most:,} in "
        f"{figures.seconds(begun.budget_s)}, with the proof of the best"
    )


def _conditions(when: "tuple[tuple[str, tuple[str, ...]], ...]") -> str:
    return " and ".join(f"{name} is {_any_of(values)}" for name, values in when)


def _any_of(values: tuple[str, ...]) -> str:
    """Return "2 to 16" for whole numbers in a row, else each value."""
    numbers = [int(one) for one in values if one.isdecimal()]
    if len(numbers) == len(values) > 2 and numbers == [*range(numbers[0], numbers[-1] + 1)]:
        return f"{numbers[0]} to {numbers[-1]}"
    return " or ".join(values)


def _show(report: "Report", options: TuneOptions) -> int:
    page = options["page"]
    is_free = write_formats(report, options["to"], options["markdown"])
    if page is not None:
        from loadstone.report import html

        write(html.render(report), page)
        report = replace(report, page=str(page))  # and no command that would write it
    if is_free and is_stdout_free(page):
        print_report(report, in_full=True)
    return report.exit_code
