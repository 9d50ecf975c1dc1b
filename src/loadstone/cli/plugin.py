"""--plugin: the user's own scenarios, known before a task file is read."""

import click

FILES = "loadstone.plugins"  # the context's meta keeps under it what was loaded


def _load(ctx: click.Context, _: click.Parameter, files: tuple[str, ...]) -> None:
    from loadstone.functions.plugin import load_plugins

    load_plugins(files)
    ctx.meta[FILES] = files


PLUGIN = click.option(
    "--plugin",
    "plugins",
    metavar="FILE.py",
    multiple=True,
    callback=_load,
    expose_value=False,
    help="Own scenarios; may be given several times.",
)
