"""What the commands share that read or write the store."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store


class StorePlace(click.ParamType["StoreLocation"]):
    """A folder, or the URL of a PostgreSQL database."""

    name = "FOLDER|URL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "StoreLocation":
        """Return the location; a default is one already."""
        from loadstone.store import location

        if isinstance(value, location.StoreLocation):
            return value
        found = location.read(str(value))
        if found.folder.exists() and not found.folder.is_dir():
            self.fail(f"{found.folder} is a file; name a folder", param, ctx)
        return found


def _usual() -> "StoreLocation":
    from loadstone.store import location

    return location.usual()


STORE = click.option(
    "--store",
    "location",
    type=StorePlace(),
    default=_usual,
    help="Where results are stored: a folder, or postgresql://USER@HOST/DATABASE[?files=FOLDER]. "
    "Default: LOADSTONE_STORE, else the platform's data folder.",
)


_TAKEN = f"{__name__}.taken"  # path -> the option that writes there


class OutputFile(click.File):
    """A file that is written at the end; one that cannot be is refused before anything is done."""

    def __init__(self) -> None:
        super().__init__("w", lazy=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the file, which is created at the first write."""
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


JSON = click.option(
    "--json", "to", type=OutputFile(), help="Write the result as JSON; - is stdout."
)


def open_store(location: "StoreLocation") -> "Store":
    """Open the chosen store, or make it."""
    from loadstone.store.store import Store

    return Store.open(location)


def open_to_read(location: "StoreLocation") -> "Store":
    """Open the chosen store without making one: a mistyped --store is said."""
    from loadstone.store.store import Store

    return Store.open_to_read(existing(location))


def existing(location: "StoreLocation") -> "StoreLocation":
    """Return the chosen location; InvalidInput where it is a folder that is not there."""
    from loadstone import paths
    from loadstone.errors import InvalidInput

    folder = location.folder
    if location.database is None and folder != paths.store() and not folder.exists():
        raise InvalidInput(f"--store {folder}: no such folder; no results are kept there")
    return location


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
