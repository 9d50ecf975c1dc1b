"""Use of resources as sentences, as data and as a table."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.diagnosis.bottleneck import Bottleneck
from loadstone.diagnosis.bounds import upper_bounds
from loadstone.diagnosis.demand import BottleneckKind, ResourceUse
from loadstone.diagnosis.finding import Finding
from loadstone.diagnosis.resources import Resources
from loadstone.report import figures
from loadstone.result.model import Measurement

if TYPE_CHECKING:
    from rich.console import RenderableType

FULL, NEAR = 0.9, 0.6  # shares from which a resource is shown in red and in yellow


def of(measurement: Measurement) -> dict[str, Any]:
    """Return bottleneck, bounds and findings as JSON-compatible data; null if not monitored."""
    found = measurement.resources
    if found is None:
        return {"bottleneck": None, "resources": None, "findings": None}
    return {
        "bottleneck": bottleneck_as_data(found.bottleneck),
        "resources": as_data(found.observation.uses),
        "findings": findings_as_data(found.findings),
        "bounds": _bounds(found),
        "figures": {name: _number(value) for name, value in found.observation.figures},
        "not_watched": list(found.not_watched),
    }


def sentences(measurement: Measurement) -> Iterator[str]:
    """Describe the upper bounds of throughput by the costs of a request, also with one change."""
    found = measurement.resources
    if found is None or found.bottleneck.kind not in (BottleneckKind.CPU, BottleneckKind.WORKERS):
        return
    bounds = upper_bounds(found.observation)
    if bounds is None:
        return
    changed = ", ".join(
        f"{figures.rate(bound.rate_rps)} with {name}" for name, bound in bounds.changed.items()
    )
    yield (
        f"by what a request costs, at most {figures.rate(bounds.unchanged.rate_rps)} a second are "
        f"possible as it is, {changed}: bounds, no forecasts"
    )


def _bounds(found: Resources) -> dict[str, Any] | None:
    """Return upper bounds of throughput as JSON-compatible data; null if unknown."""
    bounds = upper_bounds(found.observation)
    if bounds is None:
        return None
    return {
        "rate_rps": bounds.unchanged.rate_rps,
        "limit": bounds.unchanged.limit,
        "changes": [
            {"change": name, "rate_rps": bound.rate_rps, "limit": bound.limit}
            for name, bound in bounds.changed.items()
        ],
    }


def as_data(uses: Sequence[ResourceUse]) -> list[dict[str, Any]]:
    """Return the uses as JSON-compatible data, the most utilised first."""
    return [
        {
            "name": one.name,
            "kind": one.kind.value,
            "role": str(one.role),
            "busy": _number(one.busy),
            "capacity": _number(one.capacity),
            "unit": one.unit,
            "utilisation": _number(one.utilisation),
            "demand_ms": _milliseconds(one.demand_s),
            "bound_rps": _number(one.bound_rps),
        }
        for one in uses
    ]


def bottleneck_as_data(one: Bottleneck) -> dict[str, Any]:
    """Return the bottleneck as JSON-compatible data."""
    return {
        "kind": one.kind.value,
        "role": str(one.role),
        "utilisation": _number(one.utilisation),
        "demand_ms": _milliseconds(one.demand_s),
        "sentence": one.sentence,
    }


def findings_as_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON-compatible data."""
    return [
        {
            "id": one.id,
            "sentence": one.sentence,
            "evidence": {figure.name: figure.value for figure in one.evidence},
            "confidence": one.confidence.value,
            "advice": one.advice,
        }
        for one in findings
    ]


def table(uses: Sequence[ResourceUse]) -> Table:
    """Return a table of resources; demands and bounds only if requests were counted."""
    found = Table(box=SIMPLE_HEAD, pad_edge=False)
    has_demand = any(one.demand_s is not None for one in uses)
    found.add_column("resource", no_wrap=True)
    for head in ("used", "of", "utilised", *(("per request", "bound") if has_demand else ())):
        found.add_column(head, justify="right")
    for one in uses:
        row: list[RenderableType] = [
            one.name,
            f"{one.busy:.2f}",
            figures.capacity(one),
            Text(figures.percent(one.utilisation), _style(one)),
        ]
        if has_demand:
            row += [cost(one), "-" if one.bound_rps is None else f"{figures.rate(one.bound_rps)}/s"]
        found.add_row(*row)
    return found


def cost(one: ResourceUse) -> str:
    """Return the demand of one request on a resource."""
    return "-" if one.demand_s is None else figures.milliseconds(one.demand_s * 1000)


def _style(one: ResourceUse) -> str:
    if one.utilisation >= FULL:
        return "red"
    return "yellow" if one.utilisation >= NEAR else "green"


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else _number(seconds * 1000)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
