"""What one iteration sends: steps, each one HTTP request with holes to be filled."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class JsonCapture:
    """Keep a text, number or truth value of a JSON answer for later steps of the iteration.

    `pointer` says where it stands (RFC 6901): "/token/user/id", "/users/0/name".
    """

    name: str
    pointer: str


# A step whose answer lacks what it captures ends with BAD_HTTP; so does one whose captured value
# could not stand where a later step puts it (a space in a path).
Capture = HeaderCapture | JsonCapture


@dataclass(frozen=True, slots=True)
class Step:
    """One HTTP request; `action` is its name in results (Rally: atomic action)."""

    action: str
    method: str
    path: Template
    headers: tuple[tuple[str, Template], ...] = ()
    body: Template = ()
    expect_status: tuple[int, ...] = (200,)
    captures: tuple[Capture, ...] = ()


def text(value: str) -> Template:
    """Give a template without holes."""
    return (Text(value),)
