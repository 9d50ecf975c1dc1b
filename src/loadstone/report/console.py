"""Where results are printed: a terminal, or a file; no figure of a table is cut."""

from typing import IO, Any

from rich import measure
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

WIDTH = 120  # of wide tables: Rally's is as wide
LEAST_WIDTH = 80  # of a table, where it has so much in it
# Wider than any table; a width to measure in.
_UNBOUNDED = 10_000


class WholeTables(Console):
    """Cuts no figure: a table that needs more columns than there are is printed wider.

    rich would end a cell that does not fit with a dot for the digits that are lost.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, in as many columns as the widest table needs."""
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
    """Return a console for wide tables: in a file their lines need not fold."""
    to = to or console()
    return to if to.is_terminal else console(to.file, max(to.width, WIDTH))
