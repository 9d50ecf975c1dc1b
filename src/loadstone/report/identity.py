"""Keystone requests caused by iterations, as sentences and as data."""

from collections.abc import Iterator
from typing import Any

from loadstone.analysis.model import Trial
from loadstone.monitor.identity_requests import IdentityRequests, RequestKind
from loadstone.report import figures


def lines(trial: Trial | None) -> Iterator[str]:
    """Yield the Keystone requests per iteration, and the iterations per second that it sustains."""
    found = trial.identity if trial else None
    if found is None or not found.iterations:
        return
    parts = [
        f"{found.per_iteration(kind):.2f} {_several(kind)}"
        for kind in RequestKind
        if not kind.is_once and found.per_iteration(kind)
    ]
    each = f" ({', '.join(parts)})" if parts else ""
    yield f"Keystone requests per iteration: {found.total_per_iteration:.2f}{each}"
    once = [
        f"{one.count} {one.kind if one.count == 1 else _several(one.kind)}"
        for one in found.kinds
        if one.kind.is_once
    ]
    if once:
        yield f"  besides, for the services' own tokens: {', '.join(once)}"
    if found.bound_rps is not None:
        measured = ", ".join(
            f"{figures.rate(one.rate_rps)} {_several(one.kind)} per s (run {one.run_id})"
            for one in found.capacities
        )
        bound = figures.rate(found.bound_rps)
        yield f"  Keystone's N allows {bound} such iterations per second: {measured}"
    elif parts:
        yield "  how many per second Keystone sustains is known once `capacity` has found N here"


def as_data(found: IdentityRequests | None) -> dict[str, Any] | None:
    """Return the requests as JSON-compatible data; None without an access log."""
    if found is None:
        return None
    return {
        "iterations": found.iterations,
        "per_iteration": found.total_per_iteration,
        "kinds": [
            {
                "kind": one.kind.value,
                "count": one.count,
                "idle": one.idle,
                "per_iteration": found.per_iteration(one.kind),
                "is_once": one.kind.is_once,
            }
            for one in found.kinds
        ],
        "bound_rps": found.bound_rps,
        "measured": [
            {"kind": one.kind.value, "rate_rps": one.rate_rps, "run_id": one.run_id}
            for one in found.capacities
        ],
    }


def _several(kind: RequestKind) -> str:
    return {
        RequestKind.DISCOVERY: "discoveries",
        RequestKind.OTHER: "others",
    }.get(kind, f"{kind}s")
