"""`loadstone config`: the defaults that hold, and where each comes from."""

import os
from pathlib import Path

import click

from loadstone.cli import defaults
from loadstone.cli.stored import JSON, is_stdout_free, write_json


@click.command()
@JSON
@click.pass_context
def config(ctx: click.Context, to: Path | None) -> None:
    """Show the defaults that configuration files and the environment set, and where they are.

    In rising order: the user's file, loadstone.toml in the working directory, LOADSTONE_* of the
    environment, options. LOADSTONE_CONFIG=FILE reads only this file; LOADSTONE_CONFIG=- reads
    none.
    """
    from loadstone.cli.output import show_rows

    found = defaults.settings()
    root = ctx.find_root().command
    unknown: frozenset[str] = frozenset()
    if isinstance(root, click.Group):
        defaults.require_known(found, root)
        defaults.require_values(found, root)
        unknown = defaults.without_option(os.environ, root)
    rows = [(one.name, _text(one.value), str(one.source)) for one in found]
    rows += _of_environment(unknown)
    if to is not None:
        files = [str(path) for path in defaults.files()]
        data = [dict(zip(("name", "value", "from"), row, strict=True)) for row in rows]
        write_json({"files": files, "defaults": data}, to)
    if is_stdout_free(to):
        for path in defaults.files():
            click.echo(f"{path}{'' if os.path.isfile(path) else ' (absent)'}")
        if rows:
            click.echo()
            show_rows(("NAME", "VALUE", "FROM"), rows)


def _text(value: object) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)


def _of_environment(unknown: frozenset[str]) -> list[tuple[str, str, str]]:
    """Return the variables of Loadstone; values of secrets are masked."""
    from loadstone.system.redaction import masked

    names = sorted(name for name in os.environ if name.startswith(f"{defaults.PREFIX}_"))
    values = masked({name: os.environ[name] for name in names})
    ignored = "environment, without effect: no option is called so"
    return [
        (name, str(values[name]), ignored if name in unknown else "environment") for name in names
    ]
