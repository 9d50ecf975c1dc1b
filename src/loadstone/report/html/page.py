"""Reports as one self-contained HTML page: the answer first, everything else folded below it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from loadstone.report.chart import Chart, Tone
from loadstone.report.html import svg
from loadstone.report.section import Cell, IntervalCell, Report, Section, Table, ToneCell
from loadstone.system import files
from loadstone.system.printable import visible

BADGE = 6.0  # half the size of a verdict's mark in its table
LEAST_REACH = 0.25  # of the value: half of the scale of interval bars
MOST_STEPS = 5  # of what to do that are not folded


def write(reports: Sequence[Report], path: Path) -> None:
    """Write the page of one report, or of several."""
    files.write(path, render(*reports))


def render(*reports: Report) -> str:
    """Return the page as text."""
    has_flame = any(_has_flame(section) for one in reports for section in one.sections)
    template = _environment().get_template("page.html.j2")
    page = template.render(reports=reports, has_flame=has_flame, version=version("loadstone"))
    return visible(page)


def live_document(title: str, nonce: str, *, can_stop: bool) -> str:
    """Return the page of a command that still measures; its script fills it with fragments."""
    template = _environment().get_template("live.html.j2")
    return visible(template.render(title=title, nonce=nonce, can_stop=can_stop))


def present(section: Section) -> str:
    """Return the fragment of what is measured at present."""
    return visible(_macros().now_of(section))


def results(reports: Sequence[Report]) -> str:
    """Return the fragment of what has ended, as the page shows it; without flame graphs."""
    return visible(_macros().results_of(tuple(map(_without_flames, reports))))


def _without_flames(report: Report) -> Report:
    return replace(report, sections=tuple(map(_without_flame, report.sections)))


def _without_flame(section: Section) -> Section:
    return replace(section, flame=None, parts=tuple(map(_without_flame, section.parts)))


def _macros() -> Any:
    """Return the template whose macros are called alone."""
    return _environment().get_template("now.html.j2").module


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("loadstone.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.globals.update(
        cell=_cell, drawing=_drawing, mark=_marked, inlined=_inlined, most_steps=MOST_STEPS
    )
    return environment


def _has_flame(section: Section) -> bool:
    return section.flame is not None or any(map(_has_flame, section.parts))


def _cell(cell: Cell, table: Table) -> Markup | str:
    match cell:
        case ToneCell():
            return _marked(cell.text, cell.tone)
        case IntervalCell():
            return _bar(cell, _reach(table)) + escape(cell.text)
        case _:
            return cell


def _reach(table: Table) -> float:
    """Return how far the interval bars of a table reach, as a share of their values."""
    spans = [cell for row in table.rows for cell in row.cells if isinstance(cell, IntervalCell)]
    shares = [abs(end / at - 1) for one in spans for at, end in _ends(one) if at]
    return max((LEAST_REACH, *shares))


def _ends(span: IntervalCell) -> list[tuple[float, float]]:
    if span.low is None or span.high is None:
        return []
    at = span.at or (span.low + span.high) / 2
    return [(at, span.low), (at, span.high)]


def _bar(span: IntervalCell, reach: float) -> Markup:
    """Return the interval as a bar around its value; all bars of a table have one scale."""
    ends = [50 + 50 * (end / at - 1) / reach for at, end in _ends(span) if at]
    if not ends:
        return Markup()
    left, right = ends
    return Markup(
        '<span class="interval" aria-hidden="true">'
        '<i style="left:{:.1f}%;width:{:.1f}%"></i></span> '
    ).format(left, max(right - left, 1))


def _drawing(chart: Chart) -> Markup:
    return Markup(svg.draw(chart))  # noqa: S704 (drawn here, its texts escaped)


def _marked(text: str, tone: Tone) -> Markup:
    size = 2 * BADGE + 2
    drawn = svg.mark(tone, BADGE + 1, BADGE + 1, BADGE - 1)
    shape = Markup(f'<svg width="{size}" height="{size}" aria-hidden="true">{drawn}</svg>')  # noqa: S704 (numbers and a tone only)
    return Markup('<span class="badge {}">{} {}</span>').format(tone, shape, text)


def _inlined(name: str) -> Markup:
    text = resources.files("loadstone.report.html").joinpath(name).read_text("utf-8")
    return Markup(text)  # noqa: S704 (a file of this package)
