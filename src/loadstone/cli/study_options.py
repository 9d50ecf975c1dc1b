"""What `loadstone study` can be told: options and their types."""

from pathlib import Path
from typing import TextIO, TypedDict

import click

QUICK = click.option("--quick", is_flag=True, help="The study's shorter form, where it has one.")
SEED = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Of the order."
)


class Shown(TypedDict):
    """What the command line says of a study that is to be shown."""

    name: str
    quick: bool
    seed: int
    folder: Path | None
    to: TextIO | None
    markdown: bool


class Options(TypedDict):
    """What the command line says of a study that is to be run."""

    name: str | None
    quick: bool
    seed: int
    resume: str | None
    folder: Path | None
    to: TextIO | None
