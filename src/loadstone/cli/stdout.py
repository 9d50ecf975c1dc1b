"""Standard output that says in one line why it cannot be written, and ends quietly with its reader.

Wraps the file descriptor: whatever prints (click, rich, json) meets the same errors.
"""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from loadstone.errors import EnvironmentUnusable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED_PIPE = 141  # 128 + SIGPIPE, as shells report it of other programs
ENCODING_ERRORS = "loadstone.plain"
# What tables and sentences use beyond ASCII, for a terminal or file that takes only that.
_PLAIN = {"–": "-", "—": "-", "−": "-", "±": "+-", "×": "x", "…": "...", "·": "."}  # noqa: RUF001


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class _Descriptor(io.FileIO):
    """A file descriptor whose failures are Loadstone's own exceptions."""

    has_written = False

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            count = super().write(data)
        except BrokenPipeError:
            self._discard_the_rest()
            raise ReaderGone from None
        except OSError as problem:
            self._discard_the_rest()
            raise EnvironmentUnusable(
                f"cannot write to standard output: {problem.strerror}"
            ) from None
        self.has_written = True
        return count

    def _discard_the_rest(self) -> None:
        # Python flushes once more at its end, and would report the failure a second time.
        with suppress(OSError), open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), self.fileno())


class Stdout(io.TextIOWrapper):
    """Standard output as the rest of the program sees it."""

    def __init__(self, descriptor: _Descriptor, like: io.TextIOBase) -> None:
        self._descriptor = descriptor
        super().__init__(
            io.BufferedWriter(descriptor),
            encoding=like.encoding,
            errors=ENCODING_ERRORS,
            line_buffering=descriptor.isatty(),
        )

    @property
    def has_written(self) -> bool:
        """Whether anything was printed."""
        self.flush()
        return self._descriptor.has_written


@contextmanager
def guarded() -> Iterator[None]:
    """Let standard output be a `Stdout`; where it is no file (in a test), leave it alone."""
    before = sys.stdout
    try:
        before.flush()
        own = Stdout(_Descriptor(before.fileno(), "wb", closefd=False), before)  # type: ignore[arg-type]  # a text stream
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
