"""The result of a run as a badge (SVG) for a README or a dashboard."""

from html import escape

from loadstone.report import figures
from loadstone.result.model import Run

GREEN, RED, GREY = "#2f7d32", "#b3261e", "#6b7280"
LABEL = "loadstone"
SHORTFALL = 1  # the exit code
_CHARACTER = 7  # pixels of a character of 11 px Verdana, about the widest of its digits
_PADDING = 6
_HEIGHT = 20


def render(run: Run, code: int) -> str:
    """Return the badge; `code` is the exit code of the run, which chooses its colour."""
    label, message = _words(run, code)
    colour = {0: GREEN, SHORTFALL: RED}.get(code, GREY)
    left, right = (2 * _PADDING + _CHARACTER * len(text) for text in (label, message))
    title = escape(f"{label}: {message}")
    texts = "".join(
        f'<text x="{middle}" y="14" textLength="{width - 2 * _PADDING}">{escape(text)}</text>'
        for text, middle, width in (
            (label, left / 2, left),
            (message, left + right / 2, right),
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" '
        f'role="img" aria-label="{title}"><title>{title}</title>'
        f'<rect width="{left}" height="{_HEIGHT}" fill="#374151"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11">{texts}</g></svg>\n'
    )


def _words(run: Run, code: int) -> tuple[str, str]:
    searches = [one for one in run.searches if one.policy == "search"]
    if len(searches) == 1:
        [only] = searches
        return only.title, f"N {_number(only.capacity)}"
    if searches:
        return LABEL, ", ".join(f"{one.title} {_number(one.capacity)}" for one in searches)
    held = {0: "held", SHORTFALL: "fell short"}
    return run.title or LABEL, held.get(code, "not decided")


def _number(capacity: figures.CapacityFigures | None) -> str:
    number = figures.n(capacity)
    if number == figures.NOT_FOUND:
        return number
    within = figures.interval(capacity)
    return f"{number}/s" + (f" ({within})" if within not in (figures.MISSING, number) else "")
