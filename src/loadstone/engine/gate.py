"""The one gate: every plan passes it before it reaches an engine.

What the user permits is written into the plan's limits, and the engine keeps them. import-linter
holds that no other module runs an engine.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from loadstone.cloud.permission import require_loopback
from loadstone.engine import local
from loadstone.engine.local import LoadResult, PreparedRun, Spilled
from loadstone.engine.pair import Pair, PairEngine
from loadstone.errors import LoadTimeUsed
from loadstone.system.clock import Clock

__all__ = [
    "LOCAL",
    "Allowance",
    "Engine",
    "LoadResult",
    "Pair",
    "PreparedRun",
    "Spilled",
    "call",
    "fleet",
    "fleet_status",
    "pair",
    "prepare",
    "run",
    "run_to_file",
]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from loadstone.engine.callables.model import Called, CallPlan
    from loadstone.engine.fleet.address import FleetAddress
    from loadstone.engine.fleet.fleet import FleetStatus
    from loadstone.engine.iteration_buffer import OnSamples
    from loadstone.engine.progress import OnProgress
    from loadstone.engine.samples import Samples
    from loadstone.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits on rate, time and destination of one load."""

    max_rate_rps: float  # iterations started per second (--max-rate)
    load_s: float  # the load time that is left (--budget)
    beyond_loopback: bool = False  # --yes-load-this-target


class Engine(Protocol):
    """Sends a plan: from this machine (`LOCAL`), or from the hosts of a fleet.

    Tests have one that simulates the service and the time in which it answers.
    """

    @property
    def clock(self) -> Clock:
        """The clock in which its loads take place."""

    def run(self, plan: "Plan", on_progress: "OnProgress | None" = None) -> LoadResult:
        """Send a plan; samples are kept in memory."""

    def run_to_file(
        self,
        plan: "Plan",
        path: Path,
        on_progress: "OnProgress | None" = None,
        on_samples: "Callable[[Samples], None] | None" = None,
    ) -> Spilled:
        """Send a plan; samples go to a file."""

    def failure(self) -> str | None:
        """Return why it can send no more load (a host of a fleet was lost), or None."""


LOCAL: Engine = local


@contextmanager
def fleet(address: "FleetAddress") -> "Iterator[Engine]":
    """Connect to a fleet."""
    from loadstone.engine.fleet import connect

    with connect.opened(address) as engine:
        yield engine


def fleet_status(address: "FleetAddress") -> "FleetStatus":
    """Return the status of a fleet's hosts, without load."""
    from loadstone.engine.fleet import connect

    with connect.opened(address) as engine:
        return engine.status()


def pair(engine: Engine, random: "Random") -> Pair:
    """Return the engines of two runs whose loads take turns, in an order that `random` draws."""
    return Pair(cast("PairEngine", engine), random)


def run(
    plan: "Plan",
    allowance: Allowance,
    on_progress: "OnProgress | None" = None,
    engine: Engine = LOCAL,
) -> LoadResult:
    """Run a plan as `engine.local.run` does, within the allowance."""
    return engine.run(_limited(plan, allowance), on_progress)


def prepare(plan: "Plan", allowance: Allowance) -> PreparedRun[LoadResult]:
    """Prepare a plan as `engine.local.prepare` does, within the allowance."""
    return local.prepare(_limited(plan, allowance))


def run_to_file(
    plan: "Plan",
    path: Path,
    allowance: Allowance,
    on_progress: "OnProgress | None" = None,
    on_samples: "Callable[[Samples], None] | None" = None,
    engine: Engine = LOCAL,
) -> Spilled:
    """Run a plan as `engine.local.run_to_file` does, within the allowance."""
    return engine.run_to_file(_limited(plan, allowance), path, on_progress, on_samples)


def call(
    plan: "CallPlan",
    allowance: Allowance,
    on_progress: "OnProgress | None" = None,
    on_samples: "OnSamples | None" = None,
) -> "Called":
    """Run a call plan as `engine.callables.run` does, within the allowance."""
    # Imported here, because loads of requests do not need worker processes.
    from loadstone.engine.callables import run as callables

    _require_time(allowance)
    limited = replace(
        plan,
        max_rate_rps=allowance.max_rate_rps,
        load_s=allowance.load_s,
        loopback_only=not allowance.beyond_loopback,
    )
    return callables.run(limited, on_progress, on_samples)


def _limited(plan: "Plan", allowance: Allowance) -> "Plan":
    _require_time(allowance)
    origin = plan.origin
    if not allowance.beyond_loopback:
        # The engine also refuses such addresses; this check has the better message.
        require_loopback(origin.host, origin.port, origin.url)
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
