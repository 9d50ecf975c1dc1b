"""A scenario: what one iteration sends, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from loadstone.keystone.resources import CreatedByIterations, iteration_prefix
from loadstone.plan.model import Origin
from loadstone.plan.script import (
    Captured,
    Column,
    Iteration,
    Part,
    Step,
    Steps,
    Template,
    Text,
    WeightedScript,
)

JSON_HEADERS = (
    ("Accept", (Text("application/json"),)),
    ("Content-Type", (Text("application/json"),)),
)
SUBJECT_TOKEN, ADMIN_TOKEN = Column("token"), Column("admin_token")
ROOT = Column("root")  # the complete path of a request above the version: "/"
MADE = Column("made")  # before the iteration's number in the names of created resources


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps with paths relative to the version (/auth/tokens), with holes for known columns."""

    name: str  # Rally's name if Rally has the scenario
    title: str
    request: str  # description of what an iteration sends
    steps: Steps
    # Columns of its own, such as passwords that it sets.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    makes: tuple[
        CreatedByIterations, ...
    ] = ()  # what its iterations create, with the iteration's number in the name
    # Describes what is removed only with the users; shown to those who bring their own users.
    goes_with_users: str = ""
    origin: Origin | None = None  # None: the cloud's identity API
    mix: tuple[WeightedScript, ...] = ()  # which steps an iteration executes; empty: all
    connection: Literal["kept", "iteration", "request"] = "kept"

    @property
    def columns(self) -> frozenset[str]:
        """Columns that the steps use, except the scenario's own."""
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
        """Return a copy for one phase of load, with unique names for what it creates."""
        return replace(self, values={**self.values, MADE.column: (iteration_prefix(run_id),)})

    @property
    def needs_application_credentials(self) -> bool:
        """Whether each user needs an application credential."""
        return "application_credential_id" in self.columns

    @property
    def needs_tokens(self) -> bool:
        """Whether tokens must be issued before the load."""
        return SUBJECT_TOKEN.column in self.columns


def filled(template: str, **holes: Column | Captured | Iteration) -> Template:
    """Parse a template with holes written as <name>."""
    parts: list[Part] = []
    rest = template
    while rest:
        before, mark, after = rest.partition("<")
        name, _, rest = after.partition(">")
        parts.append(Text(before))
        if mark:
            parts.append(holes[name])
    return tuple(part for part in parts if part != Text(""))
