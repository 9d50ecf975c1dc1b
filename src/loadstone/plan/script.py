"""Script of an iteration: steps, each an HTTP request with placeholders, or a pause."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text of a request."""

    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """A placeholder for a value of a column of the plan: row i mod n for iteration i, unescaped.

    Values for a JSON body are JSON-escaped when the column is created, not when it is sent.
    """

    column: str


@dataclass(frozen=True, slots=True)
class Captured:
    """A placeholder for a value that an earlier step of the same iteration captured."""

    capture: str


@dataclass(frozen=True, slots=True)
class Iteration:
    """A placeholder for a prefix and the iteration's number, which is unique in its run.

    Every run counts from 0, so names that outlive a run need a prefix of that run.
    """

    iteration: str


@dataclass(frozen=True, slots=True)
class OneTimeCode:
    """A placeholder for the code of this moment (RFC 6238: SHA-1, six digits, 30 seconds).

    The column has secrets in base32 (RFC 4648).
    """

    one_time_code: str


Part = Text | Column | Captured | Iteration | OneTimeCode
Template = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class HeaderCapture:
    """Captures a response header's value for later steps of the iteration."""

    name: str
    header: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class JsonCapture:
    """Captures a string, number or boolean of a JSON response for later steps of the iteration.

    `pointer` is a JSON pointer (RFC 6901): "/token/user/id", "/users/0/name". With `equals`, any
    other value ends the step with WRONG_CONTENT.
    """

    name: str
    pointer: str
    optional: bool = False
    encoded: bool = False  # percent-encoded, for a form body
    equals: str | None = None


@dataclass(frozen=True, slots=True)
class LinkCapture:
    """Captures path and query of the link in a header, without the slash that they begin with.

    The link must lead to the plan's origin. With `parameter`, only the value of that query
    parameter is captured, as it stands in the link, which may lead anywhere.
    """

    name: str
    link: str = "Location"
    parameter: str | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class FormCapture:
    """Captures the action of a form in an HTML page, like a link, or its hidden fields.

    Hidden fields are encoded for a form body: a=1&b=2.
    """

    name: str
    form: int = 0  # its number in the page
    hidden: bool = False
    optional: bool = False


# A step ends with BAD_HTTP if its response lacks the value to capture, or if the value is invalid
# where a later step uses it (a space in a path). If an optional value is absent, the steps that
# need it are skipped.
Capture = HeaderCapture | JsonCapture | LinkCapture | FormCapture


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """True if the last earlier step of this action was sent and got one of these statuses.

    The earlier step must list these statuses as expected: any other status is a failure, which ends
    the iteration.
    """

    action: str
    status: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One HTTP request; `action` is its name in results (Rally: atomic action).

    A failed step ends its iteration: of the steps after it only those marked `always` are sent, if
    the values they need were captured (such as deleting what an earlier step created).
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
        """All templates of the request."""
        return (self.path, self.body, *(value for _, value in self.headers))


@dataclass(frozen=True, slots=True)
class Pause:
    """A uniformly distributed wait (`Plan.seed`); it has a sample row without a status.

    It is part of the iteration's duration, and occupies the iteration's connection or worker. After
    a failed step it is skipped, unless it is marked `always`.
    """

    action: str
    min_s: float
    max_s: float
    only_if: StatusCondition | None = None
    always: bool = False
    kind: Literal["pause"] = "pause"


Steps = tuple[Step | Pause, ...]


def columns_of(steps: Steps) -> frozenset[str]:
    """Return the columns that steps use."""
    requests = [step for step in steps if isinstance(step, Step)]
    parts = [part for step in requests for template in step.templates for part in template]
    used = {part.column for part in parts if isinstance(part, Column)}
    return frozenset(used | {part.one_time_code for part in parts if isinstance(part, OneTimeCode)})


@dataclass(frozen=True, slots=True)
class WeightedScript:
    """The next `steps` of the plan are one script, chosen with probability weight / sum of weights.

    The choice depends only on `Plan.seed` and the iteration's number. Captures and conditions are
    local to a script.
    """

    steps: int
    weight: float


def mixed(*scripts: tuple[Steps, float]) -> tuple[Steps, tuple[WeightedScript, ...]]:
    """Return steps and mix of a plan for weighted scripts; actions are numbered across scripts."""
    steps = tuple(step for script, _ in scripts for step in script)
    return steps, tuple(WeightedScript(len(script), weight) for script, weight in scripts)


def text(value: str) -> Template:
    """Return a template without placeholders."""
    return (Text(value),)
