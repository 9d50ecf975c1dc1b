"""What is run where the engine's scripts do not reach, and what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.plan.load import ClosedLoad, OpenLoop

if TYPE_CHECKING:
    # Workers import this file, and need no numpy.
    from loadstone.engine.local import Measured

# Actions that are Loadstone's own. The first and the last row of every iteration that has ended are
# WAIT (due until a worker began) and ITERATION (the whole); PAUSE is time that the scenario asked
# to be idle (Rally: idle_duration).
WAIT, PAUSE, ITERATION = "(wait)", "(pause)", "(iteration)"
MOST_WORKERS = 256


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function by its place: an importable module, or the path of a .py file."""

    place: str
    name: str
    # Modules that take long to import: once for all workers instead of once in each.
    imports: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}:{self.name}"


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One stretch of load whose iterations are calls `function(context, **arguments)`.

    Iteration i is made as `rows[i mod n]`; `settings` are the same for all. Both may hold secrets:
    their values are struck out of every cause that is kept.
    """

    function: Function
    load: OpenLoop | ClosedLoad
    arguments: Mapping[str, object] = field(default_factory=dict, repr=False)
    rows: tuple[Mapping[str, str], ...] = field(default=({},), repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    # An iteration that takes longer is ended together with its worker; None: no limit.
    timeout_s: float | None = None
    # At most so many at a time in an open loop, by the user's own wish; None: MOST_WORKERS.
    max_in_flight: int | None = None
    # After the schedule's end: how long iterations may still take.
    drain_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Failures that are alike: one full cause, and how many there were."""

    action: str  # where it happened; ITERATION where in none
    cause: str  # "DummyScenarioException: Expected failure", one line without secrets
    count: int
    iteration: int  # the first that failed so, from 0


@dataclass(frozen=True, slots=True)
class Output:
    """What an iteration gave besides its timings, in the form of Rally's charts."""

    iteration: int  # from 0
    additive: tuple[str, ...] = ()  # each a chart as JSON
    complete: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Called:
    """What a call plan measured.

    `actions[samples.action]` names a row; a name with a slash is an action inside another
    ("foo/bar"). WAIT is the first, ITERATION the last, so that `analysis` is told
    `steps = len(actions)`.
    """

    measured: "Measured"
    actions: tuple[str, ...]
    failures: tuple[Failure, ...] = ()  # most frequent first
    outputs: tuple[Output, ...] = ()
    outputs_dropped: int = 0  # charts beyond what is kept
