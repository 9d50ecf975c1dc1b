"""Atomic writes, and lines that are on disk once they are written."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loadstone.errors import EnvironmentUnusable

PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
_NEW = 0o666  # minus the umask
STREAMS = (Path("/dev/stdin"), Path("/dev/stdout"), Path("/dev/stderr"))


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner may enter; missing parents get the usual mode.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


@contextmanager
def replaced(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield a temporary path, which replaces `path` once it is written and synced to disk.

    A device or pipe (/dev/stdout) is written to directly, also if it leads to a file; of another
    link, the file is replaced that it leads to. Without a mode, a file keeps the one that it has.
    """
    is_file = _is_replaced(path)
    try:
        path = _followed(path) if is_file else path
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot write {path}: {problem.strerror}") from problem
    # A name that others cannot predict: in a folder like /tmp they could make a link of that name.
    suffix = f"{os.getpid()}.{secrets.token_hex(8)}.part"
    temporary = path.with_name(f".{path.name}.{suffix}") if is_file else path
    try:
        if is_file:
            new = _NEW if mode is None else mode
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, new))
            if mode is None and os.path.exists(path):
                temporary.chmod(path.stat().st_mode & 0o777)
        yield temporary
        if is_file:
            _settle(temporary)
            temporary.replace(path)
            _settle(path.parent)
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot write {path}: {problem.strerror}") from problem
    finally:
        if is_file:
            with suppress(OSError):  # its folder is not a directory
                temporary.unlink(missing_ok=True)


def is_writable(path: Path) -> bool:
    """Return whether `write` can probably write a path: beside a file, too, to replace it."""
    if not _is_replaced(path):
        return os.access(path, os.W_OK)
    try:
        whole = _followed(path)
    except OSError:
        return False
    return os.access(whole.parent, os.W_OK) and (
        not os.path.exists(whole) or os.access(whole, os.W_OK)
    )


def _is_replaced(path: Path) -> bool:
    # Unlike pathlib's, these answer for a path in a folder that must not be entered, too.
    return not _is_stream(path) and (os.path.isfile(path) or not os.path.exists(path))


def _followed(path: Path) -> Path:
    """Return the file that a link leads to; somebody else's may lead to a file of this user's.

    Raises OSError if links lead to each other.
    """
    if not os.path.islink(path) or path.lstat().st_uid != os.getuid():
        return path
    whole = Path(os.path.realpath(path))
    if whole.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return whole


def _is_stream(path: Path) -> bool:
    """Whether a path is that of an open stream, which may be a file."""
    whole = path.absolute()
    folders = ("/proc", "/dev/fd")
    return whole in STREAMS or any(whole.is_relative_to(folder) for folder in folders)


def write(path: Path, text: str, mode: int | None = None) -> None:
    """Write a text file atomically."""
    with replaced(path, mode) as temporary:
        # A name of a file that is not UTF-8 has characters that cannot be encoded.
        temporary.write_text(text, encoding="utf-8", errors="replace")


def append_line(path: Path, line: str) -> None:
    """Append a line and sync it to disk; a last line that was cut short is replaced."""
    try:
        with path.open("a+b") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        _settle(path.parent)
    except OSError as problem:
        raise EnvironmentUnusable(f"{path} cannot be written: {problem.strerror}") from problem


def _settle(path: Path) -> None:
    # The rename is an entry of the folder, which must be synced separately.
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
