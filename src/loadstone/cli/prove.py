"""`loadstone prove`: the gain of a change of settings."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from loadstone.cli.choose import UNDONE_ANYWAY, backend_of
from loadstone.cli.compare import (
    LoadOptions,
    comparison_of,
    config_of,
    load_options,
    measure,
    show_dry_comparison,
    temporary,
    unmeasured,
    write_comparison,
    write_unmeasured,
)
from loadstone.cli.output import command_line
from loadstone.cli.stored import JSON, JUNIT, MARKDOWN, STORE, is_stdout_free

if TYPE_CHECKING:
    from loadstone.compare.measure import Side
    from loadstone.run.backend import Backend


class ProofOptions(LoadOptions):
    """Options of the measurement and of the output."""

    lab: str
    anyway: bool
    junit: Path | None


class ProveOptions(ProofOptions):
    """The values of the options."""

    changes: tuple[str, ...]


@click.command()
@click.option("--lab", metavar="NAME", required=True, help="Deployment whose settings are A.")
@click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    required=True,
    help="Setting that B changes; may be repeated.",
)
@load_options()
@MARKDOWN
@JUNIT
@UNDONE_ANYWAY
@STORE
@JSON
@click.pass_context
def prove(ctx: click.Context, **options: Unpack[ProveOptions]) -> None:
    """Measure before and after a change of settings, in pairs, and state the gain.

    Creates two deployments, one with the settings of --lab NAME and one with the change, and
    removes them at the end. NAME itself is not touched.

    \b
    loadstone prove --lab demo --set workers=4
    loadstone prove --lab demo --scenario validate --set cache=memcached

    Exit code 0 if there is an answer: faster, slower or the same; 1 if there is one, but something
    that a run created could not be removed; 4 if there is none; 70 after an internal error.
    """
    from loadstone.errors import InvalidInput
    from loadstone.lab import deployment
    from loadstone.lab.keystone import settings

    known = deployment.load(options["lab"]).state.last.settings
    pairs = [pair for pair in known if pair[0] not in settings.OF_ITS_OWN]
    changes = [settings.split(change) for change in options["changes"]]
    present, changed = settings.read(pairs), settings.read([*pairs, *changes])
    if present == changed:
        raise InvalidInput(
            f"--set {' '.join(options['changes'])}: lab {options['lab']} has this already, so that "
            "there is no change to measure"
        )
    require_lab_undone(options["lab"], anyway=options["anyway"])
    before, after = temporary("before", "a", present), temporary("after", "b", changed)
    ctx.exit(state_gain((before, after), options["changes"], options, backend_of(ctx)))


def require_lab_undone(name: str, *, anyway: bool) -> None:
    """Refuse if a fault of the lab whose settings are measured is still in force."""
    from loadstone.faults.pending import lab_target, require_undone

    require_undone(lab_target(name), partial(click.echo, err=True), anyway=anyway)


def state_gain(
    sides: "tuple[Side, Side]",
    changes: tuple[str, ...],
    options: ProofOptions,
    backend: "Backend",
    notes: tuple[str, ...] = (),
    parameters: tuple[tuple[str, str], ...] = (),
) -> int:
    """Measure both sides, write the comparison and its paragraph; return the exit code.

    `parameters` are stored with both runs.
    """
    from loadstone.compare.proof import paragraph
    from loadstone.errors import EnvironmentUnusable, InvalidInput, MeasurementInvalid

    if options["is_dry"]:
        show_dry_comparison(sides, options)
        return 0
    config = config_of(sides, options, parameters=parameters)
    try:
        measured = measure(config, options["location"], backend)
    except (EnvironmentUnusable, InvalidInput, MeasurementInvalid) as problem:
        write_unmeasured([unmeasured(config, problem, options)], options)
        raise
    found = comparison_of(measured, options, notes=notes)
    code = write_comparison((found,), options)
    if is_stdout_free(options["to"], options["markdown"], options["junit"]):
        click.echo()
        not_full = measured.comparison.not_full
        click.echo(paragraph(found, changes, measured.memory_mb, command_line(), not_full))
    return code
