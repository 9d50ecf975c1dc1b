"""Plan and result of a load that consists of calls of a Python function."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.errors import InvalidInput
from loadstone.plan.load import ClosedLoad, Load, OpenLoop

if TYPE_CHECKING:
    # Workers import this module; it must not need numpy.
    from loadstone.engine.local import LoadResult

# Loadstone's own actions. The first and last row of every completed iteration are WAIT (due until a
# worker started it) and ITERATION (the total). PAUSE is idle time that the scenario asked for
# (Rally: idle_duration).
WAIT, PAUSE, ITERATION = "(wait)", "(pause)", "(iteration)"
MOST_WORKERS = 256
DRAIN_S = 600.0  # as long as Rally's constant_for_duration waits for an iteration


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function in an importable module or a .py file."""

    place: str
    name: str
    # Modules that are slow to import: loaded once for all workers.
    imports: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}:{self.name}"


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A phase of load whose iterations are calls `function(context, **arguments)`.

    Iteration i uses `rows[i mod n]`; `settings` are the same for all. Both may contain secrets,
    which are removed from every stored cause.
    """

    function: Function
    load: OpenLoop | ClosedLoad
    arguments: Mapping[str, object] = field(default_factory=dict, repr=False)
    rows: tuple[Mapping[str, str], ...] = field(default=({},), repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    # An iteration that takes longer is ended, with its worker; None: no limit.
    timeout_s: float | None = None
    # Concurrency limit of an open loop, set by the user; None: MOST_WORKERS.
    max_in_flight: int | None = None
    # Time for running iterations after the end of the schedule.
    drain_s: float = DRAIN_S
    # Limits that override the load: iterations started per second, and seconds of load.
    max_rate_rps: float | None = None
    load_s: float | None = None
    # The first connection that a function opens beyond loopback ends the load; only the gate sets
    # this to False, with the user's permission.
    loopback_only: bool = True


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Group of similar failures: one full cause, and their number."""

    action: str  # action in which it happened; ITERATION if outside any
    cause: str  # "DummyScenarioException: Expected failure", one line without secrets
    count: int
    iteration: int  # the first one, from 0
    outcome: int  # of the iterations, as in their rows
    status: int


@dataclass(frozen=True, slots=True)
class IterationOutput:
    """Additional output of an iteration, in the format of Rally's charts."""

    iteration: int  # from 0
    additive: tuple[str, ...] = ()  # each a chart as JSON
    complete: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Called:
    """What a call plan measured.

    `actions[samples.action]` names a row; a name with a slash is a nested action ("foo/bar"). WAIT
    is the first and ITERATION the last, so `analysis` gets `steps = len(actions)`.
    """

    measured: "LoadResult"
    actions: tuple[str, ...]
    failures: tuple[FailureGroup, ...] = ()  # most frequent first
    outputs: tuple[IterationOutput, ...] = ()
    outputs_dropped: int = 0  # charts beyond what is kept


def require_room(what: str, load: Load, max_in_flight: int | None) -> None:
    """Refuse a load that needs more workers than are allowed."""
    wanted = load.workers if isinstance(load, ClosedLoad) else max_in_flight
    if wanted is not None and wanted > MOST_WORKERS:
        raise InvalidInput(
            f"{what}: {wanted} at a time are asked for, and each takes a process: "
            f"at most {MOST_WORKERS}"
        )
