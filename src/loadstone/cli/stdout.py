"""Standard output with one-line errors, and a silent exit if its reader is gone.

Wraps the file descriptor, so that click, rich and json get the same errors.
"""

import codecs
import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from loadstone.cli.stderr import discard
from loadstone.errors import EnvironmentUnusable
from loadstone.system.printable import Printable, visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED_PIPE = 141  # 128 + SIGPIPE, as shells report it of other programs
ENCODING_ERRORS = "loadstone.plain"
# ASCII replacements of the other characters in tables and sentences.
_PLAIN = {"–": "-", "—": "-", "−": "-", "±": "+-", "×": "x", "…": "...", "·": "."}  # noqa: RUF001


class ReaderGone(Exception):
    """The reader of standard output has closed it."""


class _Descriptor(io.FileIO):
    """A file descriptor that raises Loadstone's exceptions."""

    has_written = False

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        # Not `isatty`, which is false for a terminal that has gone away already.
        self._is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            count = super().write(data)
        except BrokenPipeError:
            discard(self)
            raise ReaderGone from None
        except OSError as problem:
            discard(self)
            if self._is_device and problem.errno == errno.EIO:
                return memoryview(data).nbytes  # the terminal was closed; nobody reads on
            raise EnvironmentUnusable(
                f"cannot write to standard output: {problem.strerror}"
            ) from None
        self.has_written = True
        return count


class Stdout(io.TextIOWrapper):
    """The text stream that replaces sys.stdout."""

    def __init__(self, descriptor: _Descriptor, like: io.TextIOBase) -> None:
        self._descriptor = descriptor
        super().__init__(
            io.BufferedWriter(descriptor),
            encoding=like.encoding,
            errors=ENCODING_ERRORS,
            line_buffering=descriptor.isatty(),
        )

    def write(self, text: str, /) -> int:
        """Write a text without control characters."""
        super().write(visible(text))
        return len(text)

    @property
    def styled(self) -> "Styled":
        """The stream for texts that contain escape sequences of our own."""
        return Styled(self)

    def write_styled(self, text: str) -> int:
        """Write a text as it is."""
        return super().write(text)

    @property
    def has_written(self) -> bool:
        """Whether anything was printed."""
        self.flush()
        return self._descriptor.has_written


class Styled(Printable):
    """Standard output for rich, whose texts are visible already."""

    def __init__(self, stdout: Stdout) -> None:
        super().__init__(stdout)
        self._stdout = stdout

    def write(self, text: str, /) -> int:
        """Write a text as it is."""
        return self._stdout.write_styled(text)


@contextmanager
def guarded() -> Iterator[None]:
    """Replace sys.stdout by a `Stdout`, unless it has no file descriptor (in tests)."""
    before = sys.stdout
    try:
        before.flush()
        own = Stdout(_Descriptor(before.fileno()), before)  # type: ignore[arg-type]  # a text stream
    except (AttributeError, OSError, ValueError):
        yield
        return
    sys.stdout = own
    try:
        yield
        own.flush()
    finally:
        sys.stdout = before
        with suppress(ReaderGone, EnvironmentUnusable):
            own.flush()


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in text), error.end


codecs.register_error(ENCODING_ERRORS, _plain)
