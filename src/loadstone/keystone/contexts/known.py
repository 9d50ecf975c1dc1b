"""What an earlier run, which was interrupted, has made already."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self

from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal, Readiness, read
from loadstone.keystone.things import Kind, Thing


@dataclass(frozen=True, slots=True)
class Known:
    """Ids of what is there, by kind and name; and which users are ready, by their ids."""

    ids: Mapping[tuple[Kind, str], str] = field(default_factory=dict)
    ready: Mapping[str, Readiness] = field(default_factory=dict)

    @classmethod
    def of(cls, identity: Identity, journal: Journal, domain: Thing | None) -> Self:
        """Say what of the journal's things still lies in the run's own domain."""
        record = read(journal.path)
        if record is None or domain is None or domain.id is None:
            return cls()
        named = {(thing.kind, thing.name): thing.id for thing in record.remaining if thing.id}
        if not named:
            return cls()
        # Somebody may have removed some, or all with their domain.
        there = {
            thing.id
            for kind in (Kind.PROJECT, Kind.USER)
            for thing in identity.find(kind, domain_id=domain.id)
        }
        ids = {key: thing_id for key, thing_id in named.items() if thing_id in there}
        kept = set(ids.values())
        return cls(ids, {key: how for key, how in record.ready.items() if key in kept})

    def without_passwords(self) -> Self:
        """Give the same with no user ready: their passwords are not those that are known."""
        return replace(self, ready={})


def today() -> str:
    """Give the day by which Keystone counts logins."""
    return datetime.now(UTC).date().isoformat()
