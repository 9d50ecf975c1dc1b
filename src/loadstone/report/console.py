"""Consoles for results, on a terminal or in a file. Tables are never truncated."""

from collections.abc import Iterable
from typing import IO, Any, cast

from rich import measure
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table

from loadstone.system.printable import styled, visible

WIDTH = 120  # columns of wide tables, as in Rally
LEAST_WIDTH = 80  # columns; a wider table gets at least this many
# Wider than any table, to measure tables without wrapping.
_UNBOUNDED = 10_000


class PrintableConsole(Console):
    """Makes control characters in texts visible; only styles and movements are rich's own."""

    @property
    def file(self) -> IO[str]:
        """The stream, which gets rich's own escape sequences."""
        return cast("IO[str]", styled(super().file))

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render to segments without control characters."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else visible(segment.text)
            yield segment if text == segment.text else segment._replace(text=text)


class WholeTables(PrintableConsole):
    """Prints a table that does not fit wider than the console, instead of truncating cells.

    rich would replace the digits that do not fit with an ellipsis.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print with at least the width of the widest table."""
        needed = max((self._least_width(one) for one in objects), default=0)
        before = self._width
        try:
            self._width = max(needed, self.width)
            super().print(*objects, **options)
        finally:
            self._width = before

    def _least_width(self, part: object) -> int:
        table = part.renderable if isinstance(part, Padding) else part
        if not isinstance(table, Table) or not table.show_header:  # a grid of sentences
            return 0
        unbounded = self.options.update(width=_UNBOUNDED, max_width=_UNBOUNDED)
        needs = measure.Measurement.get(self, unbounded, part)  # type: ignore[arg-type]  # a table
        return min(needs.maximum, max(needs.minimum, LEAST_WIDTH))


def console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """Return a console for results: stdout, or the given file."""
    return WholeTables(
        file=file, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False
    )


def wide(to: Console | None = None) -> Console:
    """Return a console for wide tables: in a file, at least WIDTH columns."""
    to = to or console()
    return to if to.is_terminal else console(to.file, max(to.width, WIDTH))
