"""--plugin: the user's own scenarios, known before a task file is read."""

import click


def _load(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> None:
    from loadstone.functions.plugin import load_plugins

    load_plugins(files)


PLUGIN = click.option(
    "--plugin",
    "plugins",
    metavar="FILE.py",
    multiple=True,
    callback=_load,
    expose_value=False,
    help="Own scenarios; may be given several times.",
)
