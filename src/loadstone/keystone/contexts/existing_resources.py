"""Resources that an earlier, interrupted run has already created."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal, UserReadiness, read
from loadstone.keystone.resources import Resource, ResourceKind


@dataclass(frozen=True, slots=True)
class ExistingResources:
    """Ids of existing resources by kind and name, and the users that are ready, by id."""

    ids: Mapping[tuple[ResourceKind, str], str] = field(default_factory=dict)
    ready: Mapping[str, UserReadiness] = field(default_factory=dict)

    @classmethod
    def of(cls, identity: Identity, journal: Journal, domain: Resource | None) -> Self:
        """Return which of the journal's resources still exist in the run's own domain."""
        record = read(journal.path)
        if record is None or domain is None or domain.id is None:
            return cls()
        named = {(thing.kind, thing.name): thing.id for thing in record.remaining if thing.id}
        if not named:
            return cls()
        # Somebody may have removed some of them, or the whole domain.
        there = {
            thing.id
            for kind in (ResourceKind.PROJECT, ResourceKind.USER)
            for thing in identity.find(kind, domain_id=domain.id)
        }
        ids = {key: thing_id for key, thing_id in named.items() if thing_id in there}
        existing_ids = set(ids.values())
        return cls(ids, {key: how for key, how in record.ready.items() if key in existing_ids})


def today() -> str:
    """Return the day as Keystone counts logins (UTC)."""
    return datetime.now(UTC).date().isoformat()
