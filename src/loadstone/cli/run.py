"""`loadstone run`: runs a Rally task file."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from loadstone.cli.choose import (
    ANYWAY,
    FEDERATION,
    MONITOR,
    PERMISSION,
    PROFILE,
    TAG,
    Command,
    backend_of,
    fault_commands,
    fault_options,
    target_options,
)
from loadstone.cli.dry_run import DRY_RUN, show_dry_config
from loadstone.cli.duration import Duration, RateRange, Span
from loadstone.cli.generator import (
    HIGHEST_RPS,
    TRACE_SHARE,
    LoadingOptions,
    fleet_of,
    fleet_options,
    generator_options,
    placement_of,
)
from loadstone.cli.oidc import OIDC, TargetOptions, oidc_options, target_of
from loadstone.cli.output import carry_out, command_line, print_report, write_formats
from loadstone.cli.stdout import ReaderGone
from loadstone.cli.stored import (
    JSON,
    STORE,
    OutputFile,
    is_stdout_free,
    open_store,
    show_notices,
    write_json,
)
from loadstone.cli.task import arguments_text, template_options
from loadstone.cli.watching import watching_options
from loadstone.errors import LoadstoneError
from loadstone.system.crash import InternalError

if TYPE_CHECKING:
    from loadstone.oidc.target import OidcIssuer
    from loadstone.rally.task.checked import Checked
    from loadstone.report.section import Report
    from loadstone.result.model import Run
    from loadstone.run.backend import Backend
    from loadstone.target.choice import NamedTarget
    from loadstone.workload.model import RunConfig

# Rally's exit codes: 2 if an SLA failed, 1 if a task could not run (or could not clean up).
RALLY_SLA, RALLY_ERROR = 2, 1


class RunOptions(TargetOptions, LoadingOptions):
    """The values of the options."""

    file: str
    raw: str | None
    args_file: str | None
    federation_file: Path | None
    watched: tuple[str, ...]
    profiles: bool
    aborts: bool
    rally_pacing: bool
    rally_requests: bool
    existing: Path | None
    resumed: str | None
    most: tuple[str, ...]
    step: str | None
    until: str | None
    max_rate_rps: float
    budget_s: float
    hook_timeout_s: float
    faults_file: Path | None
    may_break: bool
    junit: Path | None
    rally_json: Path | None
    style: str


def limit_options(command: Command) -> Command:
    """Add the options that limit a run and its load."""
    text = "Maximum number of iterations started per second. An rps runner may not ask for more."
    rate = RateRange(0.1, HIGHEST_RPS)
    command = click.option("--max-rate", "max_rate_rps", type=rate, default=5000.0, help=text)(
        command
    )
    text = "Maximum load time, over all workloads."
    command = click.option("--budget", "budget_s", type=Duration(), default="50m", help=text)(
        command
    )
    text = "Time limit of each hook command."
    command = click.option(
        "--hook-timeout",
        "hook_timeout_s",
        type=Span(is_positive=True),
        default="10m",
        help=text,
    )(command)
    text = "Pace an rps runner as Rally does, including its bursts and doubled ramps."
    command = click.option("--rally-pacing", is_flag=True, help=text)(command)
    text = "Send every request that Rally sends in an iteration, for results comparable to Rally's."
    command = click.option("--rally-requests", is_flag=True, help=text)(command)
    command = TRACE_SHARE(generator_options(command))
    text = "Rally env spec with existing users, for workloads without a users context."
    path = click.Path(path_type=Path, exists=True, dir_okay=False)
    command = click.option("--existing-users", "existing", type=path, help=text)(command)
    text = "Continue with the users that an interrupted RUN (an id, or latest) left."
    command = click.option("--resume-users", "resumed", metavar="RUN", help=text)(command)
    text = "Reduce the task to try it out: times=2,duration=5,concurrency=1,tenants=1,..."
    command = click.option("--at-most", "most", metavar="SETTING=N", multiple=True, help=text)(
        command
    )
    text = "Condition that ends the steps: success<100%, p99>2s."
    command = click.option("--until", metavar="FIGURE", help=text)(command)
    text = "Repeat each workload with rising load: concurrency=+10, rps=+5 (needs --until)."
    command = click.option("--step", metavar="SETTING=+N", help=text)(command)
    text = "End the task as soon as an SLA rule fails."
    return click.option("--abort-on-sla-failure", "aborts", is_flag=True, help=text)(command)


def output_options(command: Command) -> Command:
    """Add the options of the output formats."""
    file = OutputFile()
    text = "rally: exit code 2 if an SLA failed, 1 if the task could not run."
    styles = click.Choice(["loadstone", "rally"])
    command = click.option(
        "--exit-code-style",
        "style",
        type=styles,
        default="loadstone",
        help=text,
    )(command)
    text = "Also write Rally's report JSON, for rally task import and rally task report."
    command = click.option("--rally-json", "rally_json", type=file, help=text)(command)
    return click.option("--junit", type=file, help="Also write JUnit XML.")(command)


class _InStyle(click.Command):
    """A command whose wrong usage, too, has the exit code of the style that is asked for."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the arguments."""
        name = "--exit-code-style"
        is_rally = f"{name}=rally" in args or (name, "rally") in pairwise(args)
        with _in_style("rally" if is_rally else "loadstone"):
            return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_InStyle)
@click.argument("file", metavar="TASK")
@template_options
@target_options
@OIDC
@oidc_options
@FEDERATION
@PERMISSION
@ANYWAY
@MONITOR
@fault_options
@PROFILE
@limit_options
@fleet_options
@output_options
@TAG
@DRY_RUN
@watching_options
@STORE
@JSON
@click.pass_context
def run(ctx: click.Context, **options: Unpack[RunOptions]) -> None:
    """Run TASK, a Rally task file for identity scenarios (-: stdin).

    A scenario may also have a name that `loadstone capacity --scenario` takes.

    \b
    Exit codes:
      0  every SLA held
      1  an SLA failed, or something is left in the cloud
      3  a workload could not run
      4  the load generator could not keep the requested rate
      70 internal error of Loadstone
    """
    from loadstone.rally.task.read import read

    with _in_style(options["style"]):
        file, raw, args_file = options["file"], options["raw"], options["args_file"]
        raw = arguments_text(raw, file, args_file)
        target = target_of(ctx, options)
        config = _config(read(file, raw, args_file), options, target)
        if options["is_dry"]:
            show_dry_config(config, options["to"])
            return
        result, report = _carried_out(config, options, backend_of(ctx))
    code = report.exit_code
    if options["style"] == "rally" and code != 0:
        # As in Rally, a workload that could not run has a failed rule, `something_went_wrong`. What
        # is left in the cloud breaks no rule.
        is_broken = any(not one.checks_passed for one in result.workloads)
        code = RALLY_SLA if is_broken else RALLY_ERROR
    ctx.exit(code)


def _config(
    checked: "Checked", options: RunOptions, target: "OidcIssuer | NamedTarget"
) -> "RunConfig":
    from loadstone.errors import InvalidInput
    from loadstone.oidc.target import OidcIssuer
    from loadstone.rally.steps import rising_load
    from loadstone.rally.task.at_most import at_most, reduced
    from loadstone.workload.model import RunConfig
    from loadstone.workload.task import TaskTerms, task_groups

    if options["http"] == "2" and options["rally_requests"]:
        raise InvalidInput("Rally speaks no HTTP/2: --http2 or --rally-requests, not both")
    caps = at_most(options["most"])
    task = reduced(checked.task, caps)
    terms = TaskTerms(
        max_rate_rps=options["max_rate_rps"],
        paces_as_rally=options["rally_pacing"],
        requests_as_rally=options["rally_requests"],
        placement=placement_of(options),
        rising_load=rising_load(options["step"], options["until"], caps),
    )
    return RunConfig(
        kind="task",
        target=target,
        groups=task_groups(task, terms, target if isinstance(target, OidcIssuer) else None),
        command=command_line(),
        title=task.title,
        max_rate_rps=options["max_rate_rps"],
        budget_s=options["budget_s"],
        aborts_on_sla_failure=options["aborts"],
        profiles=options["profiles"],
        goes_on_after_failure=True,
        hook_timeout_s=options["hook_timeout_s"],
        fault_commands=fault_commands(options),
        resumed_run=options["resumed"],
        warnings=checked.warning_lines,
        fleet=fleet_of(options),
        secrets=checked.secrets,
        tags=options["tags"],
        trace_share=options["trace_share"],
    )


def _carried_out(
    config: "RunConfig", options: RunOptions, backend: "Backend"
) -> "tuple[Run, Report]":
    """Run the task; return its result, which is written in all requested formats."""
    rally_json = options["rally_json"]

    def show_formats(result: "Run", report: "Report") -> None:
        is_free = write_formats(report, options["to"], junit=options["junit"])
        try:
            if rally_json is not None:
                from loadstone.rally.export import as_rally

                samples_of = partial(store.samples, result.run_id)
                lost: list[str] = []
                write_json(as_rally(result, samples_of, lost.append), rally_json)
                show_notices(lost)
        finally:
            if is_free and is_stdout_free(rally_json):
                print_report(report)

    with open_store(options["location"]) as store:
        return carry_out(config, backend, store, show_formats)


@contextmanager
def _in_style(style: str) -> Iterator[None]:
    """Set the exit code of errors to that of this style."""
    try:
        yield
    except (LoadstoneError, click.ClickException) as stopped:
        if style == "rally":
            # 2 means that an SLA failed
            stopped.exit_code = RALLY_ERROR  # type: ignore[misc]  # on the instance only
        raise
    except (click.Abort, click.exceptions.Exit, ReaderGone):
        raise
    except Exception as error:
        if style == "rally":
            raise InternalError(RALLY_ERROR) from error
        raise
