"""`loadstone fault`: the effect of a fault, and the recovery of the service."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import click
from click.core import ParameterSource

from loadstone.cli.choose import (
    ANYWAY,
    ARGUMENT,
    FEDERATION,
    PERMISSION,
    TAG,
    backend_of,
    fault_commands,
    fault_options,
    once,
    refuse_given,
    target_options,
)
from loadstone.cli.dry_run import DRY_RUN, show_dry_config
from loadstone.cli.duration import RateRange, ShareParam, Span
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
    provider_of,
    searched_of,
    target_of,
)
from loadstone.cli.output import command_line, run_and_show
from loadstone.cli.stored import JSON, STORE, write_json
from loadstone.cli.watching import watching_options
from loadstone.keystone.scenarios import SCENARIOS

if TYPE_CHECKING:
    from loadstone.workload.model import RunConfig


class Options(TargetOptions, LoadingOptions):
    """The values of the options."""

    federation_file: Path | None
    faults_file: Path | None
    may_break: bool
    undoes: bool
    sentences: tuple[str, ...]
    scenario: str
    given: tuple[str, ...]
    users: int
    rate_rps: float | None
    load: float
    capacity_left: bool
    repeats: int
    baseline_s: float
    observe_s: float | None
    timeout_s: float


@click.command()
@target_options
@OIDC
@oidc_options
@click.option(
    "--do",
    "sentences",
    metavar="SENTENCE",
    multiple=True,
    help="Fault to inject: 'kill keystone service on one node'; may be repeated.",
)
@click.option(
    "--undo",
    "undoes",
    is_flag=True,
    help="Inject nothing; undo the faults that earlier commands left in force on the target that "
    "--lab or --cloud names, else on all targets.",
)
@once(
    "--scenario",
    default="issue",
    help=f"{', '.join(sorted(SCENARIOS))}; a mix; or a scenario of task files.{SCENARIOS_HELP}",
)
@ARGUMENT
@click.option(
    "--users",
    type=click.IntRange(0, 10_000),
    default=10,
    help="Users to create for the run and remove at its end. 0: use the given credentials.",
)
@click.option(
    "--rate",
    "rate_rps",
    type=RateRange(0.1, HIGHEST_RPS),
    help="Offered rate, well below the target's N. Without it, N is measured first.",
)
@click.option(
    "--load",
    type=ShareParam(limit=10.0),
    default="60%",
    help="Share of N to offer if --rate is not given.",
)
@click.option(
    "--capacity-left",
    is_flag=True,
    help="Also measure N while each fault is in effect.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=5,
    help="Number of loads, each with the fault once.",
)
@click.option(
    "--baseline",
    "baseline_s",
    type=Span(),
    default="10s",
    help="Duration of load before the fault.",
)
@click.option(
    "--observe",
    "observe_s",
    type=Span(is_positive=True),
    help="Duration of load after the fault begins. Default: 20s, or longer if the fault lasts "
    "longer or N is low.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Span(is_positive=True),
    default="10s",
    help="How long a client waits for a response.",
)
@fault_options
@generator_options
@TRACE_SHARE
@fleet_options
@FEDERATION
@PERMISSION
@ANYWAY
@TAG
@DRY_RUN
@watching_options
@STORE
@JSON
@click.pass_context
def fault(ctx: click.Context, **options: Unpack[Options]) -> None:
    """Measure what a fault does to clients, and how long the service takes to recover.

    Offers a steady load, injects the fault at a recorded time, undoes it, and observes. The fault
    is undone even after Ctrl-C or if this process is killed. Without --rate, N is measured first
    (one minute) and 60 % of it is offered.

    \b
    loadstone fault --lab NAME --do "kill keystone service on one node"
    loadstone fault --lab NAME --do "freeze memcached service for 5 seconds" --rate 40
    loadstone fault --lab NAME --do "take one node out" --capacity-left --repeats 3
    loadstone fault --lab NAME --do "upgrade keystone to 30.0.0" --repeats 1
    loadstone fault --undo

    \b
    Exit codes:
      0  the service recovered each time
      1  the service did not recover each time
      2  wrong usage, or a fault that the target cannot have
      3  a fault could not be carried out or undone, or an earlier one is in force
      4  the requests do not show whether it recovered, figures are missing, or the load generator
         was the limit
      70 internal error of Loadstone
    With --undo:
      0  no fault is left in force
      3  one is; it prints how to undo it by hand
    """
    if options["undoes"] == bool(options["sentences"]):
        raise click.UsageError("give --do SENTENCE (a fault to inject) or --undo")
    if options["undoes"] and options["is_dry"]:
        raise click.UsageError("--undo sends no load; leave out --dry-run")
    if options["undoes"]:
        _undo(ctx, options)
        return
    if options["rate_rps"] is not None:
        why = "is a share of N, and --rate is the rate itself: give one of the two"
        refuse_given(ctx, ("load",), why)

    config = _config(ctx, options)
    if options["is_dry"]:
        show_dry_config(config, options["to"])
        return
    ctx.exit(run_and_show(config, backend_of(ctx), options["location"], options["to"]))


def _undo(ctx: click.Context, options: Options) -> None:
    from loadstone.errors import EnvironmentUnusable
    from loadstone.faults import pending
    from loadstone.faults.undo import undo_pending
    from loadstone.target.choice import NamedTarget

    target = None
    # [target] of a configuration file is what is loaded; without an option, all faults are undone.
    of_file = [
        name
        for name in ("lab", "cloud")
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
    ]
    options = cast("Options", {**options, **dict.fromkeys(of_file)})
    # A lab need not run for its faults to be undone.
    without_lab = {**options, "lab": None, "yes": False, "anyway": False}
    provider = provider_of(ctx, without_lab)
    if any(options[one] is not None for one in ("lab", "cloud", "oidc")):
        chosen = provider or NamedTarget(options["lab"], options["cloud"])
        target = pending.chosen_target(chosen)
        if target is None:
            raise click.UsageError("--undo: give --lab NAME of this machine, --cloud NAME, or none")
    undone: list[dict[str, str]] = []
    journals, problems = pending.journals(target)
    if target is not None and target.lab is not None and not (journals or problems):
        from loadstone.lab.deployment import load

        load(target.lab.name)  # of a name with a mistake, it is not known what is in force
    for journal in journals:
        outcome = undo_pending(journal)
        undone += [
            {"target": journal.target.name, "step": step.description} for step in outcome.undone
        ]
        if outcome.failed:
            problems = (*problems, pending.describe_failed(journal, outcome.failed))
        if held := pending.held(journal):
            problems = (*problems, held)
    if options["to"] is not None:
        write_json({"undone": undone, "problems": problems}, options["to"])
    else:
        _show_undone(undone)
    if problems:
        raise EnvironmentUnusable("\n".join(problems))


def _show_undone(undone: list[dict[str, str]]) -> None:
    for one in undone:
        click.echo(f"{one['target']}: undone: {one['step']}")
    if not undone:
        click.echo("nothing was undone: no fault was pending")


def _config(ctx: click.Context, options: Options) -> "RunConfig":
    from loadstone.workload.fault import FaultTerms, fault_groups, most_load_s, most_rate_rps
    from loadstone.workload.model import RunConfig

    terms = FaultTerms(
        sentences=options["sentences"],
        rate_rps=options["rate_rps"],
        load=options["load"],
        measures_left=options["capacity_left"],
        repeats=options["repeats"],
        baseline_s=options["baseline_s"],
        observe_s=options["observe_s"],
        timeout_s=options["timeout_s"],
        placement=placement_of(options),
    )
    target = target_of(ctx, options)
    searched = searched_of(ctx, target, options)
    return RunConfig(
        kind="fault",
        target=target,
        groups=fault_groups(searched, terms),
        command=command_line(),
        max_rate_rps=most_rate_rps(terms),
        budget_s=most_load_s(terms),
        fault_commands=fault_commands(options),
        fleet=fleet_of(options),
        secrets=searched.secrets,
        tags=options["tags"],
        trace_share=options["trace_share"],
    )
