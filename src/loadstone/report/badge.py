"""A report as a badge (SVG) for a README or a dashboard."""

from html import escape

from loadstone.errors import FELL_SHORT
from loadstone.report.junit import clean
from loadstone.report.section import Answer, Report

GREEN, RED, GREY = "#2f7d32", "#b3261e", "#6b7280"
LABEL = "loadstone"
MOST_NAMED = 3  # measurements whose figures fit
_CHARACTER = 7  # pixels of a character of 11 px Verdana, about the widest of its digits
_PADDING = 6
_HEIGHT = 20


def render(report: Report) -> str:
    """Return the badge; the exit code of the run chooses its colour."""
    label, message = map(clean, _words(report))
    colour = {0: GREEN, FELL_SHORT: RED}.get(report.exit_code, GREY)
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


def _words(report: Report) -> tuple[str, str]:
    verdict = {0: "held", FELL_SHORT: "fell short"}.get(report.exit_code, "not decided")
    leaves = [leaf for section in report.sections for leaf in section.leaves]
    if not 0 < len(leaves) <= MOST_NAMED:
        return LABEL, verdict
    # A colour alone does not tell everybody that something fell short.
    more = f", {verdict}" if report.exit_code else ""
    if len(leaves) == 1:
        [only] = leaves
        return only.title, f"{only.answer.label} {_figure(only.answer)}{more}"
    return LABEL, ", ".join(f"{one.title} {_figure(one.answer)}" for one in leaves) + more


def _figure(answer: Answer) -> str:
    unit = answer.unit.replace("per second", "/s")
    space = "" if unit.startswith("/") else " "
    within = f" ({answer.interval})" if answer.interval else ""
    return f"{answer.text}{space}{unit}".rstrip() + within
