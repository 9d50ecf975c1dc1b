"""Options and output of the commands that use the store."""

import io
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.system import files

if TYPE_CHECKING:
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store


class StorePlace(click.ParamType["StoreLocation"]):
    """A folder, or the URL of a PostgreSQL database."""

    name = "FOLDER|URL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "StoreLocation":
        """Return the location; a default is already one."""
        from loadstone.store import location

        if isinstance(value, location.StoreLocation):
            return value
        found = location.read(str(value))
        try:
            is_file = found.folder.exists() and not found.folder.is_dir()
        except OSError as problem:
            self.fail(f"{found.folder}: {problem.strerror}", param, ctx)
        if is_file:
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
    show_default=False,
    help="Where results are stored: a folder, or postgresql://USER@HOST/DATABASE[?files=FOLDER]. "
    "Default: LOADSTONE_STORE, else the platform's data folder.",
)


STDOUT = Path("-")
_TAKEN = f"{__name__}.taken"  # key in the context: path -> the option that writes to it


class OutputFile(click.ParamType[Path]):
    """A file that `write` replaces at the end; checked to be writable before the command starts."""

    name = "filename"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; - and /dev/stdout are stdout, where nothing else is printed then."""
        if not str(value):
            self.fail("the name of the file is empty; is a variable not set?", param, ctx)
        path = STDOUT if str(value) == "/dev/stdout" else Path(str(value))
        # Unlike pathlib's, these answer for a path in a folder that must not be entered, too.
        if path != STDOUT and os.path.isdir(path):
            self.fail(f"{value} is a folder; name a file", param, ctx)
        if path != STDOUT and not files.is_writable(path):
            self.fail(f"{value} cannot be written: is its folder there, and yours?", param, ctx)
        if ctx is not None and param is not None:
            taken = ctx.meta.setdefault(_TAKEN, {}).setdefault(path.absolute(), param.opts[0])
            if taken != param.opts[0]:
                self.fail(f"{taken} writes to {value} already; name another file", param, ctx)
        return path


JSON = click.option(
    "--json", "to", type=OutputFile(), help="Write the result as JSON; - is stdout."
)
JUNIT = click.option("--junit", type=OutputFile(), help="Write JUnit XML for a CI server.")
MARKDOWN = click.option(
    "--markdown", type=OutputFile(), help="Write Markdown for a pull request comment."
)


def open_store(location: "StoreLocation") -> "Store":
    """Open or create the chosen store."""
    from loadstone.store.store import Store

    return _with_notices(Store.open(location))


def open_to_read(location: "StoreLocation") -> "Store":
    """Open the chosen store without creating one; InvalidInput for a mistyped --store."""
    from loadstone.store.store import Store

    return _with_notices(Store.open_to_read(existing(location)))


def _with_notices(store: "Store") -> "Store":
    show_notices(store.notices)
    store.notices = ()
    return store


def show_notices(notices: Iterable[str]) -> None:
    """Print lines about the store itself on stderr."""
    for line in notices:
        click.echo(f"loadstone: {line}", err=True)


def existing(location: "StoreLocation") -> "StoreLocation":
    """Return the chosen location; InvalidInput if its folder does not exist."""
    from loadstone.errors import EnvironmentUnusable, InvalidInput
    from loadstone.store.database import FILE
    from loadstone.system import paths

    folder = location.folder
    try:
        # The rows of a PostgreSQL store can be read without the folder of its files.
        has_file = location.database is None and (folder / FILE).exists()
        is_there = has_file or folder.is_dir()
        # LOADSTONE_HOME may be a file.
        whole = () if is_there else (folder, *folder.parents)
        file = next((one for one in whole if one.exists() and not one.is_dir()), None)
    except OSError as problem:  # it may not be entered, as another user's
        raise EnvironmentUnusable(
            f"{folder}: {problem.strerror}; choose another with --store"
        ) from None
    if file is not None:
        raise InvalidInput(f"{file} is a file; name a folder with --store")
    if location.database is None and folder != paths.store() and not is_there:
        raise InvalidInput(f"--store {folder}: no such folder; no results are kept there")
    return location


def require_each_once(run_ids: Sequence[str]) -> None:
    """Raise InvalidInput if a run is named twice, for example as "latest" and by its id."""
    from loadstone.errors import InvalidInput

    if twice := next((one for one in run_ids if run_ids.count(one) > 1), None):
        raise InvalidInput(f"run {twice} is given twice")


def is_stdout_free(*outputs: Path | None) -> bool:
    """Return whether none of these files is stdout, so that a table can be printed there."""
    return all(one != STDOUT for one in outputs)


def write_json(data: object, to: Path) -> None:
    """Write data as JSON."""
    import json

    write(json.dumps(data, indent=2, allow_nan=False), to)


def write(text: str, to: Path) -> None:
    """Write a text with a final newline; EnvironmentUnusable if that fails.

    A file that is there already is replaced as a whole, or stays as it is, as on a full disk.
    """
    line = text.removesuffix("\n")
    if to == STDOUT:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # JUnit, OpenMetrics, HTML and SVG are UTF-8, whatever the terminal's encoding is.
            sys.stdout.reconfigure(encoding="utf-8")
        click.echo(line)
    else:
        files.write(to, f"{line}\n")
