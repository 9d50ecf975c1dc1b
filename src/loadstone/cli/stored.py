"""What the commands share that read or write the store."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from loadstone.store import Store

STORE = click.option(
    "--store",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where results are kept (default: the platform's data folder).",
)


_TAKEN = f"{__name__}.taken"  # path -> the option that writes there


class Output(click.File):
    """A file that is written at the end; one that cannot be is refused before anything is done."""

    def __init__(self) -> None:
        super().__init__("w", lazy=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the file, which is made when something is written."""
        path = Path(str(value))
        if str(value) != "-" and path.is_dir():
            self.fail(f"{value} is a folder; name a file", param, ctx)
        if str(value) != "-" and not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{value} cannot be written: is its folder there, and yours?", param, ctx)
        if ctx is not None and param is not None:
            taken = ctx.meta.setdefault(_TAKEN, {}).setdefault(path.absolute(), param.opts[0])
            if taken != param.opts[0]:
                self.fail(f"{taken} writes to {value} already; name another file", param, ctx)
        return super().convert(value, param, ctx)


JSON = click.option("--json", "to", type=Output(), help="Give it as data; - is stdout.")


def open_store(folder: Path | None) -> "Store":
    """Open the chosen store, or the usual one."""
    from loadstone import places
    from loadstone.store import Store

    return Store.open(folder or places.store())


def write_json(data: object, to: TextIO) -> None:
    """Write data for other programs."""
    import json

    write(json.dumps(data, indent=2, allow_nan=False), to)


def write(text: str, to: TextIO) -> None:
    """Write a text that ends with a new line; EnvironmentUnusable says why it cannot."""
    from loadstone.errors import EnvironmentUnusable

    try:
        click.echo(text.removesuffix("\n"), file=to)
    except BrokenPipeError:
        raise  # whoever read it has seen enough
    except (OSError, click.FileError) as problem:
        with suppress(OSError):  # or the end of the program would try once more, and not in words
            to.close()
        why = problem.message if isinstance(problem, click.FileError) else problem.strerror
        raise EnvironmentUnusable(f"cannot write {to.name}: {why}") from None
