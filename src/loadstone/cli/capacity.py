"""`loadstone capacity`: N, the highest rate that a service sustains."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

import click

from loadstone.cli.choose import (
    ANYWAY,
    ARGUMENT,
    FEDERATION,
    MONITOR,
    PERMISSION,
    PROFILE,
    TAG,
    added,
    backend_of,
    once,
    option_table,
    refuse_given,
    target_options,
)
from loadstone.cli.dry_run import DRY_RUN, show_dry_config
from loadstone.cli.duration import Duration, Number, RateRange
from loadstone.cli.generator import (
    HIGHEST_RPS,
    TRACE_SHARE,
    LoadingOptions,
    fleet_of,
    fleet_options,
    generator_options,
    placement_of,
)
from loadstone.cli.oidc import (
    OIDC,
    SCENARIOS_HELP,
    TargetOptions,
    oidc_options,
    searched_of,
    target_of,
)
from loadstone.cli.output import command_line, run_and_show
from loadstone.cli.stored import JSON, JUNIT, STORE
from loadstone.cli.task import arguments_text, template_options
from loadstone.cli.watching import watching_options
from loadstone.keystone.scenarios import SCENARIOS

if TYPE_CHECKING:
    from loadstone.target.choice import TargetChoice
    from loadstone.workload.capacity import SearchTerms
    from loadstone.workload.searchable import Searchable

# Options for --scenario only, for --task only, and for a search only.
_OF_SCENARIO = ("scenario", "given", "users")
_OF_TASK = ("workload", "is_whole", "raw", "args_file")
_OF_SEARCH = ("budget_s", "method", "objective", "curve_s", "repeat", "least_rps", "profiles")
# Between scenarios, and not between the parts of a mix: issue,mix:issue=1,validate=9.
_COMMA = re.compile(r",(?![\w.\-]+=)")


class CapacityOptions(TargetOptions, LoadingOptions):
    """The values of the options."""

    federation_file: Path | None
    watched: tuple[str, ...]
    profiles: bool
    scenario: tuple[str, ...]
    given: tuple[str, ...]
    task: str | None
    workload: str | None
    is_whole: bool
    raw: str | None
    args_file: str | None
    budget_s: float
    max_rate_rps: float
    users: int
    method: str
    objective: tuple[str, ...]
    max_connections: int
    curve_s: float
    repeat: int
    prediction: Literal["only", "first"] | None
    least_rps: float | None
    junit: Path | None


# Of a search for N.
search_options = added(
    click.option(
        "--objective",
        multiple=True,
        metavar="TEXT",
        help="Additional objective: 'p99<500ms', 'errors<0.1%'; may be repeated.",
    ),
    TRACE_SHARE,
    generator_options,
    option_table(
        ("--budget", "budget_s", Duration(), "4m",
         "Maximum load time of a search, such as 90s or 4m."),
        ("--max-rate", "max_rate_rps", RateRange(0.1, HIGHEST_RPS), 5000.0,
         "Maximum number of iterations started per second."),
        ("--users", "users", click.IntRange(0, 10_000), 10, "Users to create for the run and "
         "remove at its end. 0: create nothing and use the given credentials."),
        ("--method", "method", str, "meter", "Search method: meter, isp-ras-2015, "
         "isp-ras-2015-text, step-concurrency, closed-loop-peak, bisect or mlrsearch."),
        ("--max-connections", "max_connections", click.IntRange(1, 60_000), 10_000,
         "Maximum number of open connections (with --http2: of requests in flight). The search "
         "begins with 256 and opens more only if these are the limit."),
        ("--curve", "curve_s", Number(0.0, 300.0), 0.0, "After the search, measure a "
         "curve: this many seconds at each of a few rates up to N and a little beyond. Not part of "
         "--budget. 0: no curve."),
        ("--repeat", "repeat", click.IntRange(1, 100), 1, "Repeat the search and combine the "
         "results. This also captures noise that is slower than one search."),
    ),
)  # fmt: skip


def _separated(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for value in values for name in _COMMA.split(value)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.UsageError(f"--scenario {twice} is given twice; --repeat repeats a search")
    return tuple(names)


@click.command()
@target_options
@OIDC
@oidc_options
@FEDERATION
@PERMISSION
@ANYWAY
@MONITOR
@PROFILE
@click.option(
    "--scenario",
    metavar="NAME,...",
    multiple=True,
    default=("issue",),
    show_default="issue",
    callback=_separated,
    help="One or several, which are searched one after the other: "
    f"{', '.join(sorted(SCENARIOS))}; a mix by weight, such as mix:issue=1,validate=9; what "
    "compute hosts ask, such as mix:cloud-100; or a scenario of task files, such as "
    "Authenticate.keystone, KeystoneBasic.create_user, "
    f"HttpRequests.check_request.{SCENARIOS_HELP}",
)
@ARGUMENT
@once(
    "--task",
    metavar="FILE",
    help="Find N for a workload of this task file (-: stdin), with its users, roles and quotas. "
    "Its SLA rules become objectives.",
)
@once(
    "--workload",
    metavar="N|NAME",
    help="Workload of --task: its number in the file, from 1, or its scenario's name.",
)
@click.option(
    "--all",
    "is_whole",
    is_flag=True,
    help="Find N for each workload of --task, one after the other.",
)
@template_options
@search_options
@fleet_options
@click.option(
    "--predict",
    "prediction",
    type=click.Choice(["only", "first"]),
    is_flag=False,
    flag_value="only",
    help="Predict N without a search, from half a minute of load at about 30 % of one worker's "
    "rate, or up to two minutes if requests take long. `--predict first` predicts, then searches "
    "and compares.",
)
@click.option(
    "--fail-below",
    "least_rps",
    type=RateRange(0.001, HIGHEST_RPS),
    help="Exit code 1 if the whole interval of N is below this rate, 4 if that is undecided.",
)
@TAG
@DRY_RUN
@watching_options
@JUNIT
@STORE
@JSON
@click.pass_context
def capacity(ctx: click.Context, **options: Unpack[CapacityOptions]) -> None:
    """Find N: the highest request rate that the target sustains without degradation.

    \b
    Exit codes:
      0  N was found or predicted
      1  there is no N: more requests fail than are allowed, at any rate, or no
         rate meets the objectives; or something created could not be removed
      3  the target cannot be used, or lacks what a scenario needs
      4  no number: N is only known to lie in a wide range, the load generator was
         the limit, or the target changed during the measurement
      70 internal error of Loadstone
    With --fail-below RATE:
      0  the lower bound of N is at least RATE
      1  the upper bound of N is below RATE
      4  RATE lies between the two bounds
    """
    from loadstone.workload.capacity import search_group
    from loadstone.workload.model import RunConfig

    target = target_of(ctx, options)
    searched = _searched(ctx, options, target)
    terms = _terms(ctx, options)
    config = RunConfig(
        kind="capacity",
        target=target,
        groups=tuple(search_group((one,), terms) for one in searched),
        command=command_line(),
        max_rate_rps=options["max_rate_rps"],
        profiles=options["profiles"] and options["prediction"] != "only",
        # What one scenario needs and the target lacks does not end the others.
        goes_on_after_failure=len(searched) > 1,
        warnings=tuple(dict.fromkeys(line for one in searched for line in one.warnings)),
        fleet=fleet_of(options),
        secrets=frozenset().union(*(one.secrets for one in searched)),
        tags=options["tags"],
        trace_share=options["trace_share"],
    )
    if options["is_dry"]:
        show_dry_config(config, options["to"])
        return
    location, to, junit = options["location"], options["to"], options["junit"]
    ctx.exit(run_and_show(config, backend_of(ctx), location, to, junit))


def _terms(ctx: click.Context, options: CapacityOptions) -> "SearchTerms":
    from loadstone.workload.capacity import SearchTerms

    if options["prediction"] == "only":
        why = "needs a measured N; use --predict first"
        refuse_given(ctx, _OF_SEARCH, why)
        # A gate must not go unnoticed, wherever it is set.
        if options["least_rps"] is not None:
            raise click.UsageError(f"--fail-below {why}")
    return SearchTerms(
        method=options["method"],
        budget_s=options["budget_s"],
        max_rate_rps=options["max_rate_rps"],
        objectives=options["objective"],
        max_connections=options["max_connections"],
        curve_s=options["curve_s"],
        repeats=options["repeat"],
        least_rps=options["least_rps"],
        placement=placement_of(options),
        prediction=options["prediction"],
        is_profiled=options["profiles"] and options["prediction"] != "only",
    )


def _searched(
    ctx: click.Context, options: CapacityOptions, target: "TargetChoice"
) -> "tuple[Searchable, ...]":
    """Return what to search N of: each --scenario, or workloads of --task."""
    from loadstone.workload.capacity import of_task, of_whole_task

    file = options["task"]
    if file is None:
        refuse_given(ctx, _OF_TASK, "needs --task")
        if options["given"] and len(options["scenario"]) > 1:
            raise click.UsageError("--arg goes with one --scenario; use a command for each")
        return tuple(
            searched_of(ctx, target, {**options, "scenario": name}) for name in options["scenario"]
        )
    refuse_given(ctx, _OF_SCENARIO, "does not go with --task, whose file chooses this")
    if options["is_whole"] and options["workload"] is not None:
        raise click.UsageError("--workload chooses one workload, --all each: give one of the two")
    from loadstone.rally.task.read import read

    checked = read(
        file, arguments_text(options["raw"], file, options["args_file"]), options["args_file"]
    )
    if options["is_whole"]:
        return of_whole_task(checked)
    return (of_task(checked, options["workload"]),)
