"""How figures are shown: as Markdown, with the least and the most of all rounds."""

import statistics
from collections.abc import Iterator, Sequence


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Give the median, and the least and the most."""
    least, most = format(min(values), form), format(max(values), form)
    return f"{statistics.median(values):{form}} ({least} to {most})"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Give the ratio round by round: what changes from round to round hits both alike."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield "| --- " * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
