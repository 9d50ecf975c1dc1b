"""Rally's Dummy.dummy_output: figures for every kind of chart in a report."""

import random
from collections.abc import Sequence
from typing import Any

from loadstone.engine.callables.context import Context

_TEXT = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut "
    "labore et dolore magna aliqua."
)
_X_AXIS = "This is a custom X-axis label"


def dummy_output(context: Context, random_range: int = 25) -> None:
    """Output random figures."""

    def figures(names: Sequence[object]) -> list[list[object]]:
        return [[name, random.randint(1, random_range)] for name in names]  # noqa: S311

    def numbered(word: str, count: int) -> list[str]:
        return [f"{word} {number}" for number in range(1, count + 1)]

    def series(names: Sequence[str], points: range) -> list[list[object]]:
        return [[name, figures(points)] for name in names]

    _additive(context, "StatsTable", figures(["foo stat", "bar stat", "spam stat"]))
    stacked = {"label": "Measure this in Foo units"}
    area = "Additive StackedArea (no description)"
    _chart(context, "additive", area, "StackedArea", figures(numbered("foo", 6)), stacked)
    _additive(context, "Lines", figures(numbered("bar", 3)), label="Measure this in Bar units")
    _additive(context, "Pie", figures(numbered("spam", 3)))
    units = {"label": "Measure this is some units", "axis_label": _X_AXIS}
    _complete(context, "Lines", series(("Foo", "Bar", "Spam"), range(1, 8)), **units)
    units["label"] = "Yet another measurement units"
    _complete(context, "StackedArea", series(("alpha", "beta", "gamma"), range(50)), **units)
    _chart(context, "complete", "Arbitrary Text", "TextArea", [_TEXT * 2] * 4, {})
    greek = ("delta", "epsilon", "zeta", "theta", "lambda", "omega")
    _chart(context, "complete", "Complete Pie (no description)", "Pie", figures(greek), {})
    rows = [
        [f"{name} row", *(value for _, value in figures(range(4)))]
        for name in ("iota", "nu", "rho", "phi", "psi")
    ]
    columns = [f"{name} column" for name in ("mu", "xi", "pi", "tau", "chi")]
    _complete(context, "Table", {"cols": columns, "rows": rows})


def _additive(context: Context, plugin: str, data: object, **labels: str) -> None:
    title = f"Additive {plugin}"
    _chart(context, "additive", title, plugin, data, {"description": _about(title), **labels})


def _complete(context: Context, plugin: str, data: object, **labels: str) -> None:
    title = f"Complete {plugin}"
    _chart(context, "complete", title, plugin, data, {"description": _about(title), **labels})


def _about(title: str) -> str:
    return f"This is a description text for {title}"


def _chart(
    context: Context, form: str, title: str, plugin: str, data: object, more: dict[str, str]
) -> None:
    chart: dict[str, Any] = {"title": title, "chart_plugin": plugin, "data": data, **more}
    if form == "additive":
        context.output(additive=chart)
    else:
        context.output(complete=chart)
