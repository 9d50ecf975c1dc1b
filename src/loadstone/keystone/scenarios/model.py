"""A scenario: what one iteration sends, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from loadstone.keystone.things import Made, iteration_prefix
from loadstone.plan.model import Origin
from loadstone.plan.script import (
    Captured,
    Column,
    Iteration,
    Part,
    Share,
    Step,
    Steps,
    Template,
    Text,
)

JSON_HEADERS = (
    ("Accept", (Text("application/json"),)),
    ("Content-Type", (Text("application/json"),)),
)
SUBJECT_TOKEN, ADMIN_TOKEN = Column("token"), Column("admin_token")
ROOT = Column("root")  # the whole path of a request above the version: "/"
MADE = Column("made")  # before the iteration's number in the names of what iterations make


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps whose paths begin after the version (/auth/tokens), with holes for known columns."""

    name: str  # Rally's where Rally has one
    title: str
    request: str  # what an iteration sends, in words
    steps: Steps
    # Columns of its own, ready to be sent: passwords that it sets, and the like.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    makes: tuple[Made, ...] = ()  # what its iterations make, each with its number in the name
    # What goes with the users, and is removed in no other way: words for who brings his own users.
    goes_with_users: str = ""
    origin: Origin | None = None  # None: the cloud's identity API
    mix: tuple[Share, ...] = ()  # which of the steps an iteration takes; empty: all of them
    connection: Literal["kept", "iteration", "request"] = "kept"

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the steps have holes for, its own left out."""
        return frozenset(
            part.column
            for step in self.steps
            if isinstance(step, Step)
            for template in step.templates
            for part in template
            if isinstance(part, Column)
            and part not in {MADE, ROOT}
            and part.column not in self.values
        )

    def of_run(self, run_id: str) -> Self:
        """Give it for one stretch of load of this run: what it makes gets names of its own."""
        return replace(self, values={**self.values, MADE.column: (iteration_prefix(run_id),)})

    @property
    def needs_application_credentials(self) -> bool:
        """Whether each user must have an application credential before."""
        return "application_credential_id" in self.columns

    @property
    def needs_tokens(self) -> bool:
        """Whether tokens must be issued before."""
        return SUBJECT_TOKEN.column in self.columns


def filled(template: str, **holes: Column | Captured | Iteration) -> Template:
    """Split a text at its holes, written <name>."""
    parts: list[Part] = []
    rest = template
    while rest:
        before, mark, after = rest.partition("<")
        name, _, rest = after.partition(">")
        parts.append(Text(before))
        if mark:
            parts.append(holes[name])
    return tuple(part for part in parts if part != Text(""))
