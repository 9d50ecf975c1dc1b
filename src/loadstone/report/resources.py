"""Use of resources as sentences and as data."""

from collections.abc import Iterator, Sequence
from typing import Any

from loadstone.diagnosis.bottleneck import Bottleneck
from loadstone.diagnosis.bounds import upper_bounds
from loadstone.diagnosis.demand import BottleneckKind, ResourceUse
from loadstone.diagnosis.finding import Finding
from loadstone.diagnosis.resources import Resources
from loadstone.diagnosis.service import MeasuredService
from loadstone.monitor.roles import Role
from loadstone.report import figures
from loadstone.report.data import finite
from loadstone.result.model import Measurement


def of(measurement: Measurement) -> dict[str, Any]:
    """Return bottleneck, bounds and findings as JSON-compatible data."""
    found = measurement.resources
    if found is None:
        nothing: dict[str, Any] = {"bottleneck": None, "bounds": None, "resource_figures": {}}
        return nothing | {"resources": [], "findings": [], "not_watched": []}
    return {
        "bottleneck": bottleneck_as_data(found.bottleneck, found.observation.service),
        "resources": as_data(found.observation.uses, found.observation.service),
        "findings": findings_as_data(found.findings),
        "bounds": _bounds(found),
        "resource_figures": {name: finite(value) for name, value in found.observation.figures},
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
        f"by what a request costs, no more than {figures.rate(bounds.unchanged.rate_rps)}/s are "
        f"possible as it is; at most {changed} (bounds, no forecasts)"
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


def as_data(uses: Sequence[ResourceUse], service: MeasuredService) -> list[dict[str, Any]]:
    """Return the uses as JSON-compatible data, the most utilised first."""
    return [
        {
            "name": one.name,
            "kind": one.kind.value,
            "role": _role(one.role, service),
            "busy": finite(one.busy),
            "capacity": finite(one.capacity),
            "unit": one.unit,
            "utilisation": finite(one.utilisation),
            "demand_ms": _milliseconds(one.demand_s),
            "bound_rps": finite(one.bound_rps),
        }
        for one in uses
    ]


def bottleneck_as_data(one: Bottleneck, service: MeasuredService) -> dict[str, Any]:
    """Return the bottleneck as JSON-compatible data."""
    return {
        "kind": one.kind.value,
        "role": _role(one.role, service),
        "utilisation": finite(one.utilisation),
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


def _role(role: str, service: MeasuredService) -> str:
    return service.prefix if role == Role.KEYSTONE else str(role)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else finite(seconds * 1000)
