"""Standard error that never raises, so that a run outlives its terminal or the reader of a pipe."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class Stderr(io.TextIOBase):
    """Text stream that forwards to another one, and discards everything after its first failure."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write a text; after a failure, drop it."""
        try:
            self._stream.write(text)
        except UnicodeError:
            with suppress(OSError, ValueError):
                self._stream.write(ascii(text))
        except (OSError, ValueError):  # ValueError: the stream is closed
            discard(self._stream)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            discard(self._stream)

    def isatty(self) -> bool:
        """Return whether the stream is a terminal that is still there."""
        try:
            return self._stream.isatty()
        except (OSError, ValueError):
            return False

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True, as a text can always be given."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a writeable attribute in typeshed
        """Return the stream's encoding."""
        return self._stream.encoding or "utf-8"


def discard(stream: TextIO | io.FileIO) -> None:
    """Point the descriptor of a stream at /dev/null, so that a flush at exit succeeds, too."""
    with suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


def unfailing(stream: TextIO) -> TextIO:
    """Return a stream whose writes never raise."""
    return stream if isinstance(stream, Stderr) else Stderr(stream)  # type: ignore[return-value]  # lacks only what nothing calls


@contextmanager
def guarded() -> Iterator[None]:
    """Replace sys.stderr by a `Stderr`."""
    before = sys.stderr
    sys.stderr = unfailing(before)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before
