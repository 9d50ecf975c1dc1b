"""A chart drawn without any script: what print, and readers that run none, get."""

from collections.abc import Iterator
from html import escape

from loadstone.report.html.charts import Band, Chart, Series, Span, Tone, Xy
from loadstone.report.html.scale import Scale, fitted, written

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 40, 44
FEW = 300  # points of a cloud that a drawing without zoom can use
MOST_DOTS = 12  # of a line: beyond, the line alone is clearer


def draw(chart: Chart) -> str:
    """Give the chart as an SVG element; its colours are the page's."""
    x, y = scales(chart)
    parts = [
        f'<svg class="static" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(chart.title)}. {escape(chart.summary)}">',
        *_grid(chart, x, y),
        *(_band(chart.band, x, y) if chart.band else ()),
        *(part for span in chart.spans for part in _span(span, x)),
    ]
    for series in chart.series:
        parts.extend(_series(series, x, y))
    parts.extend(_legend(chart))
    return "".join((*parts, "</svg>"))


def scales(chart: Chart) -> tuple[Scale, Scale]:
    """Give both axes, so that the band is inside."""
    xs = [x for series in chart.series for x, _ in series.data]
    ys = [y for series in chart.series for _, y in series.data]
    if chart.band is not None:
        (xs if chart.band.axis == "x" else ys).extend((chart.band.low, chart.band.high))
    xs.extend(end for span in chart.spans for end in (span.low, span.high))
    x = fitted(xs, LEFT, WIDTH - RIGHT, from_zero=chart.from_zero_x)
    return x, fitted(ys, HEIGHT - BOTTOM, TOP, from_zero=chart.from_zero_y)


def _grid(chart: Chart, x: Scale, y: Scale) -> Iterator[str]:
    floor = HEIGHT - BOTTOM
    for tick in y.ticks():
        at = y(tick)
        yield f'<path class="grid" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>'
        yield _text("tick", LEFT - 6, at + 4, "end", written(tick))
    for tick in x.ticks():
        yield _text("tick", x(tick), floor + 16, "middle", written(tick))
    yield f'<path class="axis" d="M{LEFT} {floor}H{WIDTH - RIGHT}"/>'
    middle = (LEFT + WIDTH - RIGHT) // 2
    yield _text("label", middle, HEIGHT - 8, "middle", chart.x_label)
    centre = (TOP + floor) // 2
    yield (
        f'<text class="label" transform="translate(13 {centre}) rotate(-90)" '
        f'text-anchor="middle">{escape(chart.y_label)}</text>'
    )


def _band(band: Band, x: Scale, y: Scale) -> Iterator[str]:
    scale = x if band.axis == "x" else y
    ends = sorted((scale(band.low), scale(band.high)))
    wide = f"{max(ends[1] - ends[0], 2):.1f}"
    at = scale(band.at if band.at is not None else (band.low + band.high) / 2)
    line = "n" if band.at is not None else "n none"
    if band.axis == "y":
        across = WIDTH - RIGHT - LEFT
        yield f'<rect class="band" x="{LEFT}" y="{ends[0]}" width="{across}" height="{wide}"/>'
        yield f'<path class="{line}" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>'
        yield _text("n-label", WIDTH - RIGHT - 4, at - 6, "end", band.label)
        return
    down = HEIGHT - TOP - BOTTOM
    yield f'<rect class="band" x="{ends[0]}" y="{TOP}" width="{wide}" height="{down}"/>'
    yield f'<path class="{line}" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>'
    anchor = "end" if at > WIDTH - 90 else "start"
    yield _text("n-label", at + (-6 if anchor == "end" else 6), TOP + 12, anchor, band.label)


def _span(span: Span, x: Scale) -> Iterator[str]:
    left, right = x(span.low), x(span.high)
    wide = f"{max(right - left, 1.5):.1f}"
    down = HEIGHT - TOP - BOTTOM
    yield (
        f'<rect class="span {span.tone}" x="{left}" y="{TOP}" width="{wide}" height="{down}">'
        f"<title>{escape(span.label)}</title></rect>"
    )


def _series(series: Series, x: Scale, y: Scale) -> Iterator[str]:
    at = [(x(px), y(py)) for px, py in series.data]
    if not at:
        return
    match series.kind:
        case "points":
            yield from (mark(series.tone, px, py, 5.5) for px, py in at)
        case "cloud":
            few = at[:: -(-len(at) // FEW)]
            dots = "".join(f"M{px} {py}h.01" for px, py in few)
            yield f'<path class="cloud {series.tone}" d="{dots}"/>'
        case "area":
            line, floor = _line(at), HEIGHT - BOTTOM
            yield f'<path class="area {series.tone}" d="{line}V{floor}H{at[0][0]}Z"/>'
            yield f'<path class="line {series.tone}" d="{line}"/>'
        case "line" | "dashed":
            yield f'<path class="{series.kind} {series.tone}" d="{_line(at)}"/>'
            yield from _dots(series, at)


def _dots(series: Series, at: list[Xy]) -> Iterator[str]:
    if series.kind == "line" and len(at) <= MOST_DOTS:
        for x, y in at:
            yield f'<circle class="dot {series.tone}" cx="{x}" cy="{y}" r="3.5"/>'


def mark(tone: Tone, at_x: float, at_y: float, size: float) -> str:
    """Give a point whose shape tells its tone, for those who do not see the colour."""
    left, right, top, bottom = at_x - size, at_x + size, at_y - size, at_y + size
    arc = f"a{size} {size} 0 1 0"
    shapes = {
        "sustained": f"M{left} {at_y}{arc} {2 * size} 0{arc} {-2 * size} 0Z",
        "degraded": f"M{at_x} {top}L{right} {bottom}H{left}Z",
        "invalid": f"M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}",
        "undecided": f"M{at_x} {top}L{right} {at_y}L{at_x} {bottom}L{left} {at_y}Z",
    }
    shape = shapes.get(tone, f"M{left} {top}H{right}V{bottom}H{left}Z")
    return f'<path class="mark {tone}" d="{shape}"/>'


def _legend(chart: Chart) -> Iterator[str]:
    at = LEFT
    for series in chart.series:
        if series.kind == "cloud":
            continue
        if series.kind == "points":
            yield mark(series.tone, at + 6, 18, 4.5)
        else:
            kind = "dashed" if series.kind == "dashed" else "line"
            yield f'<path class="{kind} {series.tone}" d="M{at} 18h14"/>'
        yield _text("legend", at + 19, 22, "start", series.name)
        at += 32 + round(6.4 * len(series.name))


def _line(at: list[Xy]) -> str:
    return "".join(f"{'L' if i else 'M'}{x} {y}" for i, (x, y) in enumerate(at))


def _text(kind: str, x: float, y: float, anchor: str, words: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
