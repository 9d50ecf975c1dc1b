"""A scenario: what one iteration sends, as data."""

from dataclasses import dataclass

from loadstone.plan.script import Captured, Column, Step, Template, Text

JSON_HEADERS = (
    ("Accept", (Text("application/json"),)),
    ("Content-Type", (Text("application/json"),)),
)
SUBJECT_TOKEN, ADMIN_TOKEN = Column("token"), Column("admin_token")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps whose paths begin after the version (/auth/tokens), with holes for known columns."""

    name: str  # Rally's where Rally has one
    title: str
    request: str  # what an iteration sends, in words
    steps: tuple[Step, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the steps have holes for."""
        return frozenset(
            part.column
            for step in self.steps
            for template in (step.path, step.body, *(value for _, value in step.headers))
            for part in template
            if isinstance(part, Column)
        )

    @property
    def needs_tokens(self) -> bool:
        """Whether tokens must be issued before."""
        return SUBJECT_TOKEN.column in self.columns


def filled(template: str, **holes: Column | Captured) -> Template:
    """Split a text at its holes, written <name>."""
    parts: list[Text | Column | Captured] = []
    rest = template
    while rest:
        before, mark, after = rest.partition("<")
        name, _, rest = after.partition(">")
        parts.append(Text(before))
        if mark:
            parts.append(holes[name])
    return tuple(part for part in parts if part != Text(""))
