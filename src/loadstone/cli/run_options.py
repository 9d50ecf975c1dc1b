"""What `loadstone run` can be told besides its task and its target."""

from pathlib import Path
from typing import TextIO, TypedDict

import click

from loadstone.cli.choose import Command
from loadstone.cli.duration import Duration, Number
from loadstone.cli.generator import generator_options
from loadstone.cli.stored import Output
from loadstone.cli.terms import HIGHEST_RPS
from loadstone.plan.model import Http


class Options(TypedDict):
    """What the command line says."""

    file: str
    raw: str | None
    args_file: str | None
    lab: str | None
    cloud: str | None
    yes: bool
    aborts: bool
    rally_pacing: bool
    rally_requests: bool
    existing: Path | None
    resumed: str | None
    most: tuple[str, ...]
    step: str | None
    until: str | None
    cores: tuple[int, ...]
    http: Http
    max_rate_rps: float
    budget_s: float
    junit: TextIO | None
    rally_json: TextIO | None
    style: str
    folder: Path | None
    to: TextIO | None


def limit_options(command: Command) -> Command:
    """Add the options that say what ends a run, and how hard it may load."""
    words = "Iterations per second that an rps runner may ask for."
    rate = Number(0.1, HIGHEST_RPS)
    command = click.option(
        "--max-rate", "max_rate_rps", type=rate, default=5000.0, show_default=True, help=words
    )(command)
    words = "Load time at most, over all workloads."
    command = click.option(
        "--budget", "budget_s", type=Duration(), default="50m", show_default=True, help=words
    )(command)
    words = "Keep an rps runner's rate as Rally does, bursts and doubled ramps included."
    command = click.option("--rally-pacing", is_flag=True, help=words)(command)
    words = "Send all that Rally sends for an iteration, for figures to compare with Rally's."
    command = click.option("--rally-requests", is_flag=True, help=words)(command)
    command = generator_options(command)
    words = "Users that exist already, for workloads that leave room for them: Rally's env spec."
    path = click.Path(path_type=Path, exists=True, dir_okay=False)
    command = click.option("--existing-users", "existing", type=path, help=words)(command)
    words = "Go on with the users that an interrupted RUN (or: latest) has left."
    command = click.option("--resume-users", "resumed", metavar="RUN", help=words)(command)
    words = "Make the task smaller to try it: times=2,duration=5,concurrency=1,tenants=1,..."
    command = click.option("--at-most", "most", metavar="SETTING=N", multiple=True, help=words)(
        command
    )
    words = "When the steps end: success<100%, p99>2s."
    command = click.option("--until", metavar="FIGURE", help=words)(command)
    words = "Repeat each workload at rising load: concurrency=+10, rps=+5 (with --until)."
    command = click.option("--step", metavar="SETTING=+N", help=words)(command)
    words = "End the task as soon as a rule is seen to be broken."
    return click.option("--abort-on-sla-failure", "aborts", is_flag=True, help=words)(command)


def output_options(command: Command) -> Command:
    """Add the options that say in which forms the result is given."""
    file = Output()
    words = "rally: 2 where an SLA failed, 1 where the task could not be carried out."
    styles = click.Choice(["loadstone", "rally"])
    command = click.option(
        "--exit-code-style",
        "style",
        type=styles,
        default="loadstone",
        show_default=True,
        help=words,
    )(command)
    words = "Write Rally's report JSON, too: for rally task import and report."
    command = click.option("--rally-json", "rally_json", type=file, help=words)(command)
    return click.option("--junit", type=file, help="Write JUnit XML, too.")(command)
