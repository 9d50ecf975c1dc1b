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

    def additive(plugin: str, data: object, **labels: str) -> None:
        context.output(additive=_chart("Additive", plugin, data, labels))

    def complete(plugin: str, data: object, **labels: str) -> None:
        context.output(complete=_chart("Complete", plugin, data, labels))

    additive("StatsTable", figures(["foo stat", "bar stat", "spam stat"]))
    additive(
        "StackedArea",
        figures(numbered("foo", 6)),
        title="Additive StackedArea (no description)",
        label="Measure this in Foo units",
    )
    additive("Lines", figures(numbered("bar", 3)), label="Measure this in Bar units")
    additive("Pie", figures(numbered("spam", 3)))
    units = {"label": "Measure this is some units", "axis_label": _X_AXIS}
    complete("Lines", series(("Foo", "Bar", "Spam"), range(1, 8)), **units)
    units["label"] = "Yet another measurement units"
    complete("StackedArea", series(("alpha", "beta", "gamma"), range(50)), **units)
    complete("TextArea", [_TEXT * 2] * 4, title="Arbitrary Text")
    greek = ("delta", "epsilon", "zeta", "theta", "lambda", "omega")
    complete("Pie", figures(greek), title="Complete Pie (no description)")
    rows = [
        [f"{name} row", *(value for _, value in figures(range(4)))]
        for name in ("iota", "nu", "rho", "phi", "psi")
    ]
    columns = [f"{name} column" for name in ("mu", "xi", "pi", "tau", "chi")]
    complete("Table", {"cols": columns, "rows": rows})


def _chart(form: str, plugin: str, data: object, labels: dict[str, str]) -> dict[str, Any]:
    """Return a chart with these labels; one without a title of its own has a description."""
    title = f"{form} {plugin}"
    named = {"title": title, "description": f"This is a description text for {title}"}
    return {"chart_plugin": plugin, "data": data, **({} if "title" in labels else named), **labels}
