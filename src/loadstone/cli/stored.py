"""What the commands share that read or write the store."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from loadstone.store import Store

STORE = click.option(
    "--store",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where results are kept (default: the platform's data folder).",
)
JSON = click.option(
    "--json", "to", type=click.File("w", lazy=True), help="Give it as data; - is stdout."
)


def open_store(folder: Path | None) -> "Store":
    """Open the chosen store, or the usual one."""
    from loadstone import places
    from loadstone.store import Store

    return Store.open(folder or places.store())


def write_json(data: object, to: TextIO) -> None:
    """Write data for other programs."""
    import json

    click.echo(json.dumps(data, indent=2, allow_nan=False), file=to)
