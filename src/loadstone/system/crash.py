"""Internal errors: one line on stderr that names a file with the traceback, and exit code 70."""

import errno
import os
import platform
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from loadstone.errors import INTERNAL_ERROR, EnvironmentUnusable
from loadstone.system import files, paths
from loadstone.system.redaction import MASK, Redaction, masked, secrets_of_environment

FOLDER = "crashes"  # below Loadstone's home
MOST_KEPT = 20  # crash files; a loop of a CI server that fails writes one each time


class InternalError(Exception):
    """An internal error, its cause, with an exit code of its own."""

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


class _Known:
    """The secrets that this command has learnt so far."""

    redaction = Redaction()


def hide(redaction: Redaction) -> None:
    """Redact these secrets in a crash file, too."""
    _Known.redaction = _Known.redaction.also(redaction.values)


def report(error: BaseException, command: Callable[[], str]) -> tuple[str, int]:
    """Write a crash file; return the line for the user and the exit code.

    A full disk is no error of Loadstone and has no crash file.

    `command` returns the command line without secrets.
    """
    exit_code = INTERNAL_ERROR
    if isinstance(error, InternalError):
        exit_code, error = error.exit_code, error.__cause__ or error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        is_internal = exit_code == INTERNAL_ERROR
        return _full_disk(error), EnvironmentUnusable.exit_code if is_internal else exit_code
    redaction = _Known.redaction.also(secrets_of_environment())
    what = " ".join(traceback.format_exception_only(error)[-1].split())
    what = redaction.text(str(masked(what)))[:200]
    try:
        path = _write(redaction.text(_text(error, command)))
    except OSError as problem:
        return (
            f"internal error: {what}; no crash file could be written: {problem.strerror}",
            exit_code,
        )
    return f"internal error: {what}; please report it with {path}", exit_code


def _full_disk(problem: OSError) -> str:
    where = problem.filename
    disk = f"the disk of {where}" if where else "the disks of the results and of temporary files"
    return f"{problem.strerror}; free some space on {disk}"


def _text(error: BaseException, command: Callable[[], str]) -> str:
    try:
        shown = command()
    except Exception:  # the error may be in what masks the arguments
        shown = f"loadstone {MASK}"
    system = os.uname()
    head = (
        f"loadstone {version('loadstone')}",
        f"Python {platform.python_version()}, {system.sysname} {system.release} {system.machine}",
        f"time: {datetime.now(UTC).isoformat(timespec='seconds')}",
        f"command: {shown}",
    )
    return "\n".join([*head, "", *_lines(error)]) + "\n"


def _lines(error: BaseException) -> list[str]:
    # Lines of frames are source code; only messages can hold values.
    lines = "".join(traceback.format_exception(error)).splitlines()
    return [line if line.startswith("  ") else str(masked(line)) for line in lines]


def _remove_old(folder: Path) -> None:
    """Keep only the newest crash files; their names begin with the time."""
    for path in sorted(folder.glob("*.txt"))[:-MOST_KEPT]:
        with suppress(OSError):
            path.unlink()


def _write(text: str) -> Path:
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    try:
        folder = paths.home() / FOLDER
        files.make_private_folder(folder)
        path = folder / name
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, files.PRIVATE)
        _remove_old(folder)
    except OSError:  # such as a home on a full or read-only disk
        handle, temporary = tempfile.mkstemp(prefix="loadstone-crash-", suffix=".txt")
        path = Path(temporary)
    with open(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path
