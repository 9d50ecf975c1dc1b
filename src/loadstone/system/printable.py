"""Control characters made visible, so that no server, file or message controls the terminal.

`cli` replaces standard output and standard error by streams that do so for every text. rich writes
escape sequences of its own: `report/console.py` makes its texts visible, and writes to `styled`.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

# C0 except tab and line feed, DEL and C1; marks, embeddings, overrides and isolates of writing
# direction; line and paragraph separators; invisible tags.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Return a text with control characters as `\x1b`, others as JSON writes them: `\u202e`."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


class Printable:
    """Text stream that writes visible texts to another one, its `styled` stream.

    No io.TextIOBase, whose destructor would flush and drop the error.
    """

    def __init__(self, styled: TextIO) -> None:
        self.styled = styled

    def write(self, text: str, /) -> int:
        """Write a text without control characters."""
        self.styled.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self.styled.flush()

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self.styled.isatty()

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return self.styled.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    @property
    def encoding(self) -> str:
        """Return the stream's encoding."""
        return self.styled.encoding or "utf-8"

    @property
    def errors(self) -> str | None:
        """Return how the stream writes what its encoding lacks."""
        return self.styled.errors


def styled(stream: Any) -> Any:
    """Return the stream for texts that contain escape sequences of our own."""
    return getattr(stream, "styled", stream)


@contextmanager
def printable_stderr() -> Iterator[None]:
    """Replace sys.stderr by a `Printable`."""
    before = sys.stderr
    sys.stderr = Printable(before)
    try:
        yield
    finally:
        sys.stderr = before
