"""Charts as SVG: the same on a screen, a phone and paper, and without scripts."""

from collections.abc import Iterator
from html import escape

from loadstone.report.chart import Band, Chart, ChartSeries, MarkedSpan, Tone, Xy
from loadstone.report.html.scale import Scale, fitted, written

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 40, 44
LEGEND = 18  # height of a line of the legend
SPARSE = 200  # points of a cloud: above, they are drawn smaller
MOST_DOTS = 12  # on a line: above, the line alone is clearer
ROW_HEIGHT = 36  # of a named row, whose name stands above its figures
CHARACTER = 6.4  # width in px, in a font of 12 px
DIGIT = 7.7  # width in px of a digit, in a wide font of 12 px
LONGEST = 60  # characters of a row's name


def draw(chart: Chart) -> str:
    """Return the chart as an SVG element, in the colours of the page."""
    x, y = scales(chart)
    width, height = x.end + RIGHT, y.start + BOTTOM
    parts = [
        f'<svg class="static" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(chart.title)}. {escape(chart.summary)}">',
        *_grid(chart, x, y),
        *(_band(chart.band, x, y) if chart.band else ()),
        *(part for span in chart.spans for part in _span(span, x, y)),
    ]
    for series in chart.series:
        parts.extend(_series(series, x, y))
    parts.extend(_legend(chart))
    return "".join((*parts, "</svg>"))


def scales(chart: Chart) -> tuple[Scale, Scale]:
    """Return both axes, extended to include the band."""
    xs = [x for series in chart.series for x, _ in series.data]
    ys = [y for series in chart.series for _, y in series.data]
    if chart.band is not None:
        (xs if chart.band.axis == "x" else ys).extend((chart.band.low, chart.band.high))
    xs.extend(end for span in chart.spans for end in (span.low, span.high))
    top = TOP + LEGEND * (len(_legend_lines(chart)) - 1)
    if chart.rows:
        x = fitted(xs, RIGHT, WIDTH - RIGHT, from_zero=chart.from_zero_x)
        count = len(chart.rows)
        return x, Scale(0.0, count + 1.0, top + (count + 1) * ROW_HEIGHT, top)
    x = fitted(xs, LEFT, WIDTH - RIGHT, from_zero=chart.from_zero_x)
    return x, fitted(ys, HEIGHT - BOTTOM, top, from_zero=chart.from_zero_y)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."


def _grid(chart: Chart, x: Scale, y: Scale) -> Iterator[str]:
    floor = y.start
    for number, name in enumerate(chart.rows):
        at = y(len(chart.rows) - number)
        yield f'<path class="grid" d="M{x.start} {at}H{x.end}"/>'
        yield _text("tick", x.start, at - 10, "start", _short(name))
    for tick in () if chart.rows else y.ticks():
        at = y(tick)
        yield f'<path class="grid" d="M{x.start} {at}H{x.end}"/>'
        yield _text("tick", x.start - 6, at + 4, "end", written(tick))
    for tick in x.ticks():
        yield _tick_below(x(tick), floor + 16, written(tick))
    yield f'<path class="axis" d="M{x.start} {floor}H{x.end}"/>'
    yield _text("label", (x.start + x.end) / 2, floor + BOTTOM - 8, "middle", chart.x_label)
    if chart.y_label:
        yield (
            f'<text class="label" transform="translate(13 {(y.start + y.end) / 2}) rotate(-90)" '
            f'text-anchor="middle">{escape(chart.y_label)}</text>'
        )


def _tick_below(x: float, y: float, text: str) -> str:
    """Return a label below the x axis, moved inwards where the edge would cut it off."""
    half = DIGIT * len(text) / 2
    if x + half > WIDTH:
        return _text("tick", WIDTH, y, "end", text)
    if x < half:
        return _text("tick", 0, y, "start", text)
    return _text("tick", x, y, "middle", text)


def _band(band: Band, x: Scale, y: Scale) -> Iterator[str]:
    scale = x if band.axis == "x" else y
    ends = sorted((scale(band.low), scale(band.high)))
    wide = f"{max(ends[1] - ends[0], 2):.1f}"
    at = scale(band.at if band.at is not None else (band.low + band.high) / 2)
    line = "n" if band.at is not None else "n none"
    if band.axis == "y":
        across = x.end - x.start
        yield f'<rect class="band" x="{x.start}" y="{ends[0]}" width="{across}" height="{wide}"/>'
        yield f'<path class="{line}" d="M{x.start} {at}H{x.end}"/>'
        yield _text("n-label", x.end - 4, at - 6, "end", band.label)
        return
    down = y.start - y.end
    yield f'<rect class="band" x="{ends[0]}" y="{y.end}" width="{wide}" height="{down}"/>'
    yield f'<path class="{line}" d="M{at} {y.end}V{y.start}"/>'
    anchor = "end" if at + 6 + DIGIT * len(band.label) > WIDTH else "start"
    yield _text("n-label", at + (-6 if anchor == "end" else 6), y.end + 12, anchor, band.label)


def _span(span: MarkedSpan, x: Scale, y: Scale) -> Iterator[str]:
    left, right = x(span.low), x(span.high)
    wide = f"{max(right - left, 1.5):.1f}"
    yield (
        f'<rect class="span {span.tone}" x="{left}" y="{y.end}" width="{wide}" '
        f'height="{y.start - y.end}"><title>{escape(span.label)}</title></rect>'
    )


def _series(series: ChartSeries, x: Scale, y: Scale) -> Iterator[str]:
    at = [(x(px), y(py)) for px, py in series.data]
    if not at:
        return
    match series.kind:
        case "points":
            for (px, py), value in zip(at, series.data, strict=True):
                yield mark(series.tone, px, py, 5.5, _tip(series, value))
        case "cloud":
            yield _cloud(series.tone, at, "sparse " if len(at) <= SPARSE else "")
        case "area":
            line = _line(at)
            yield f'<path class="area {series.tone}" d="{line}V{y.start}H{at[0][0]}Z"/>'
            yield f'<path class="line {series.tone}" d="{line}"/>'
        case "bars":
            yield from _bars(series, at, y.start)
        case "intervals":
            ends = zip(at[::2], at[1::2], strict=True)
            drawn = "".join(
                f"M{a} {b - 5}v10M{a} {b}H{c}M{c} {b - 5}v10" for (a, b), (c, _) in ends
            )
            yield f'<path class="line {series.tone}" d="{drawn}"/>'
        case "line" | "dashed":
            yield f'<path class="{series.kind} {series.tone}" d="{_line(at)}"/>'
            yield from _dots(series, at)


def _cloud(tone: Tone, at: list[Xy], sparse: str) -> str:
    if tone == "degraded":  # a different shape, to be distinct without colour
        triangles = "".join(f"M{x} {y - 4}l4 7h-8z" for x, y in at)
        return f'<path class="mark {tone}" d="{triangles}"/>'
    dots = "".join(f"M{x} {y}h.01" for x, y in at)
    return f'<path class="cloud {sparse}{tone}" d="{dots}"/>'


def _bars(series: ChartSeries, at: list[Xy], floor: float) -> Iterator[str]:
    ends = [x for x, _ in at[1:]]
    for (x, y), end, (_, value) in zip(at[:-1], ends, series.data[:-1], strict=True):
        if value:
            wide = max(end - x - 1, 1)  # a pixel between the bars
            yield (
                f'<rect class="bar {series.tone}" x="{x}" y="{y}" width="{wide:.1f}" '
                f'height="{floor - y:.1f}"><title>{written(value)}</title></rect>'
            )


def _dots(series: ChartSeries, at: list[Xy]) -> Iterator[str]:
    if series.kind == "line" and len(at) <= MOST_DOTS:
        for (x, y), value in zip(at, series.data, strict=True):
            tip = f"<title>{_tip(series, value)}</title>"
            yield f'<circle class="dot {series.tone}" cx="{x}" cy="{y}" r="3.5">{tip}</circle>'


def _tip(series: ChartSeries, value: Xy) -> str:
    """Return what a browser shows where the pointer is."""
    return escape(f"{series.name}: {value[0]:.4g}, {value[1]:.4g}")


def mark(tone: Tone, at_x: float, at_y: float, size: float, tip: str = "") -> str:
    """Return a point whose shape also shows its tone, for readers who cannot see colours."""
    left, right, top, bottom = at_x - size, at_x + size, at_y - size, at_y + size
    arc = f"a{size} {size} 0 1 0"
    shapes = {
        "sustained": f"M{left} {at_y}{arc} {2 * size} 0{arc} {-2 * size} 0Z",
        "degraded": f"M{at_x} {top}L{right} {bottom}H{left}Z",
        "invalid": f"M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}",
        "undecided": f"M{at_x} {top}L{right} {at_y}L{at_x} {bottom}L{left} {at_y}Z",
    }
    shape = shapes.get(tone, f"M{left} {top}H{right}V{bottom}H{left}Z")
    title = f"<title>{tip}</title>" if tip else ""
    return f'<path class="mark {tone}" d="{shape}">{title}</path>'


def _legend_lines(chart: Chart) -> list[list[tuple[float, ChartSeries]]]:
    """Return the lines of the legend: each series with its position."""
    listed = [series for series in chart.series if series.kind != "cloud"]
    lines: list[list[tuple[float, ChartSeries]]] = [[]]
    at = start = float(RIGHT)
    for series in listed or [series for series in chart.series if series.data]:
        needs = 32 + round(CHARACTER * len(series.name))
        if at + needs > WIDTH and lines[-1]:
            lines.append([])
            at = start
        lines[-1].append((at, series))
        at += needs
    return lines


def _legend(chart: Chart) -> Iterator[str]:
    for number, line in enumerate(_legend_lines(chart)):
        y = LEGEND * (number + 1)
        for at, series in line:
            if series.kind in ("points", "cloud", "bars"):
                yield mark(series.tone, at + 6, y, 4.5)
            else:
                kind = "dashed" if series.kind == "dashed" else "line"
                yield f'<path class="{kind} {series.tone}" d="M{at} {y}h14"/>'
            yield _text("legend", at + 19, y + 4, "start", series.name)


def _line(at: list[Xy]) -> str:
    return "".join(f"{'L' if i else 'M'}{x} {y}" for i, (x, y) in enumerate(at))


def _text(kind: str, x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
