"""The kinds of identity services, by the target that the user chose.

A kind of service gives the rest of Loadstone four things: a choice of target and how it is
connected to (`target/`), scenarios by name, a `Searchable` of one of them, and the
`LoadGenerator` that this returns. Everything else (searches, comparisons, faults, reports) knows
only these.
"""

from dataclasses import dataclass

from loadstone.oidc.target import OidcIssuer
from loadstone.target.choice import TargetChoice
from loadstone.workload.capacity import by_name
from loadstone.workload.oidc import of_provider
from loadstone.workload.searchable import Searchable


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a target: --scenario, and what only Keystone's scenarios have."""

    scenario: str
    is_default: bool  # nobody named it, so that another kind of service has its own default
    users: int = 0
    arguments: tuple[str, ...] = ()


def searchable(target: TargetChoice, wanted: Wanted) -> Searchable:
    """Return a scenario of the target's service; InvalidInput says what is wrong."""
    if isinstance(target, OidcIssuer):
        return of_provider(None if wanted.is_default else wanted.scenario, target)
    return by_name(wanted.scenario, wanted.users, wanted.arguments)
