"""What one iteration does: steps, each an HTTP request with holes to be filled, or a pause."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes that are the same in every request."""

    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """A hole filled from the plan's columns: row i mod n for iteration i, exactly as it stands.

    A value that goes into a JSON body is JSON-escaped when the column is made, not when it is sent.
    """

    column: str


@dataclass(frozen=True, slots=True)
class Captured:
    """A hole filled with what an earlier step of the same iteration captured."""

    capture: str


@dataclass(frozen=True, slots=True)
class Iteration:
    """A hole filled with this prefix and the iteration's number, which is unique in its run.

    Runs count from 0 each: what outlives a run needs a prefix of that run's own.
    """

    iteration: str


Part = Text | Column | Captured | Iteration
Template = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class HeaderCapture:
    """Keep a response header's value for later steps of the iteration."""

    name: str
    header: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class JsonCapture:
    """Keep a text, number or truth value of a JSON answer for later steps of the iteration.

    `pointer` says where it stands (RFC 6901): "/token/user/id", "/users/0/name".
    """

    name: str
    pointer: str
    optional: bool = False


# A step whose answer lacks what it captures ends with BAD_HTTP; so does one whose captured value
# could not stand where a later step puts it (a space in a path). Where an optional one is absent,
# the steps that need it are left out.
Capture = HeaderCapture | JsonCapture


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """Holds when the last earlier step of this action was done and got one of these statuses.

    Statuses that decide must be among those that the earlier step expects: another one is a
    failure, which ends the iteration.
    """

    action: str
    status: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One HTTP request; `action` is its name in results (Rally: atomic action).

    A failed step ends its iteration: of the steps after it only those marked `always` are done,
    where what they need was captured (the deletion of what an earlier step made).
    """

    action: str
    method: str
    path: Template
    headers: tuple[tuple[str, Template], ...] = ()
    body: Template = ()
    expect_status: tuple[int, ...] = (200,)
    captures: tuple[Capture, ...] = ()
    only_if: StatusCondition | None = None
    always: bool = False
    kind: Literal["request"] = "request"

    @property
    def templates(self) -> tuple[Template, ...]:
        """All that has holes."""
        return (self.path, self.body, *(value for _, value in self.headers))


@dataclass(frozen=True, slots=True)
class Pause:
    """Waits between two bounds, evenly drawn (`Plan.seed`); a row of its own, without a status.

    It counts in the iteration's duration, and occupies the iteration's connection or worker.
    """

    action: str
    min_s: float
    max_s: float
    only_if: StatusCondition | None = None
    kind: Literal["pause"] = "pause"


Steps = tuple[Step | Pause, ...]


@dataclass(frozen=True, slots=True)
class WeightedScript:
    """The next `steps` of the plan are one script, taken with odds of weight / sum of weights.

    Which script an iteration takes hangs on `Plan.seed` and its number alone. Captures and
    conditions do not reach from one script into another.
    """

    steps: int
    weight: float


def mixed(*scripts: tuple[Steps, float]) -> tuple[Steps, tuple[WeightedScript, ...]]:
    """Return steps and mix of a plan for weighted scripts; actions count through them all."""
    steps = tuple(step for script, _ in scripts for step in script)
    return steps, tuple(WeightedScript(len(script), weight) for script, weight in scripts)


def text(value: str) -> Template:
    """Return a template without holes."""
    return (Text(value),)
