"""The kinds of identity services, by the target that the user chose.

A kind of service gives the rest of Loadstone four things: a choice of target and how it is
connected to (`target/`), scenarios by name, a `Searchable` of one of them, and the
`LoadGenerator` that this returns. Everything else (searches, comparisons, faults, reports) knows
only these.
"""

from loadstone.oidc.target import OidcIssuer
from loadstone.target.choice import TargetChoice
from loadstone.workload.capacity import by_name
from loadstone.workload.oidc import of_provider
from loadstone.workload.searchable import Searchable


def searchable(
    target: TargetChoice,
    scenario: str,
    users: int,
    arguments: tuple[str, ...],
    *,
    is_default: bool = False,
) -> Searchable:
    """Return a scenario of the target's service; InvalidInput says what is wrong.

    Only Keystone's scenarios have `users` and `arguments`. `is_default`: nobody named the scenario,
    so that another kind of service has its own default.
    """
    if isinstance(target, OidcIssuer):
        return of_provider(None if is_default else scenario, target)
    return by_name(scenario, users, arguments)
