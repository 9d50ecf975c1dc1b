"""Loadstone's own scenarios in task files, by their names on the command line."""

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import SCENARIOS, is_named, named
from loadstone.oidc import scenarios as oidc
from loadstone.plan.mix import is_mix, weights_of
from loadstone.rally.task.catalogue.scenario import CatalogueEntry
from loadstone.rally.task.catalogue.scenarios import SCENARIOS as CATALOGUE

OIDC_PLATFORM = "oidc"
OWN_NAMES = (*SCENARIOS, *oidc.SCENARIOS)


def entry_of(name: str) -> CatalogueEntry | None:
    """Return the entry of a scenario of Rally's or ours, or of a mix; None: there is none.

    InvalidInput says what is wrong with a mix.
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    if not is_mix(name) and not is_named(name) and name not in oidc.SCENARIOS:
        return None
    parts = weights_of(name) if is_mix(name) else (name,)
    of_oidc = [part for part in parts if part.startswith(oidc.PREFIX)]
    if 0 < len(of_oidc) < len(parts):
        raise InvalidInput(f"{name}: {of_oidc[0]} is of OpenID Connect, and the others are not")
    if of_oidc:
        return CatalogueEntry(name, f"{oidc.named(name).title}.", platform=OIDC_PLATFORM)
    scenario = named(name)
    return CatalogueEntry(
        name, f"{scenario.title}.", needs_own_users=bool(scenario.goes_with_users)
    )
