"""The one gate: every plan passes it before it reaches an engine.

What the user permits is written into the plan's limits, and the engine keeps them. import-linter
holds that no other module runs an engine.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine import local
from loadstone.engine.local import LoadResult, PreparedRun, Spilled
from loadstone.errors import LoadTimeUsed
from loadstone.target.permission import require_loopback

__all__ = [
    "Allowance",
    "LoadResult",
    "PreparedRun",
    "Spilled",
    "call",
    "prepare",
    "prepare_to_file",
    "run",
    "run_to_file",
]

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine.callables.model import Called, CallPlan
    from loadstone.engine.ending import Look
    from loadstone.engine.progress import Watch
    from loadstone.engine.samples import Samples
    from loadstone.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Allowance:
    """How hard, how long and where one stretch of load may be."""

    max_rate_rps: float  # iterations begun per second (--max-rate)
    load_s: float  # the load time that is left (--budget)
    beyond_loopback: bool = False  # --yes-load-this-target


def run(plan: "Plan", allowance: Allowance, watch: "Watch | None" = None) -> LoadResult:
    """Run a plan as `engine.local.run` does, within what is allowed."""
    return local.run(_limited(plan, allowance), watch)


def prepare(plan: "Plan", allowance: Allowance) -> PreparedRun[LoadResult]:
    """Prepare a plan as `engine.local.prepare` does, within what is allowed."""
    return local.prepare(_limited(plan, allowance))


def prepare_to_file(
    plan: "Plan",
    path: Path,
    allowance: Allowance,
    look: "Callable[[Samples], None] | None" = None,
) -> PreparedRun[Spilled]:
    """Prepare a plan as `engine.local.prepare_to_file` does, within what is allowed."""
    return local.prepare_to_file(_limited(plan, allowance), path, look)


def run_to_file(
    plan: "Plan",
    path: Path,
    allowance: Allowance,
    watch: "Watch | None" = None,
    look: "Callable[[Samples], None] | None" = None,
) -> Spilled:
    """Run a plan as `engine.local.run_to_file` does, within what is allowed."""
    return local.run_to_file(_limited(plan, allowance), path, watch, look)


def call(
    plan: "CallPlan",
    allowance: Allowance,
    watch: "Watch | None" = None,
    look: "Look | None" = None,
) -> "Called":
    """Run a call plan as `engine.callables.run` does, within what is allowed."""
    # Imported here: the engine's scripts do without what worker processes need.
    from loadstone.engine.callables import run as callables

    _require_time(allowance)
    limited = replace(
        plan,
        max_rate_rps=allowance.max_rate_rps,
        load_s=allowance.load_s,
        loopback_only=not allowance.beyond_loopback,
    )
    return callables.run(limited, watch, look)


def _limited(plan: "Plan", allowance: Allowance) -> "Plan":
    _require_time(allowance)
    origin = plan.origin
    if not allowance.beyond_loopback:
        # The engine refuses it, too, by the addresses that it dials; this is the user's message.
        url = f"{origin.scheme}://{origin.host}:{origin.port}"
        require_loopback(origin.host, origin.port, url)
    limits = replace(
        plan.limits,
        max_rate_rps=allowance.max_rate_rps,
        load_s=allowance.load_s,
        loopback_only=not allowance.beyond_loopback,
    )
    return replace(plan, limits=limits)


def _require_time(allowance: Allowance) -> None:
    if allowance.load_s <= 0:
        raise LoadTimeUsed("the load time is used up; raise --budget, or ask for less")
