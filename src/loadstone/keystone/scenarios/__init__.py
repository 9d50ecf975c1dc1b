"""Scenarios by their names on the command line."""

from collections.abc import Iterable
from difflib import get_close_matches

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios.authenticate import ISSUE_TOKEN, VALIDATE_TOKEN
from loadstone.keystone.scenarios.extra import EXTRA_SCENARIOS
from loadstone.keystone.scenarios.logins import LOGINS
from loadstone.keystone.scenarios.model import Scenario
from loadstone.keystone.scenarios.tokens import TOKEN_LIFE
from loadstone.keystone.scenarios.validations import VALIDATIONS
from loadstone.plan import hosts
from loadstone.plan.mix import MIX, is_mix, weights_of
from loadstone.plan.script import mixed

SCENARIOS: dict[str, Scenario] = {
    "issue": ISSUE_TOKEN,
    "validate": VALIDATE_TOKEN,
    **TOKEN_LIFE,
    **VALIDATIONS,
    **LOGINS,
    **EXTRA_SCENARIOS,
}

__all__ = ["MIX", "SCENARIOS", "Scenario", "is_named", "named", "unknown"]

# By the names that results show, too.
_BY_LONG_NAME = {scenario.name: scenario for scenario in SCENARIOS.values()}


def is_named(name: str) -> bool:
    """Return whether a scenario is known here by this name, or is a mix of such."""
    return is_mix(name) or name in SCENARIOS or name in _BY_LONG_NAME


def named(name: str) -> Scenario:
    """Return a scenario by name, or a mix such as mix:issue=1,validate=9."""
    if not is_mix(name):
        return _scenario(name)
    weights = weights_of(name)
    parts = {part: _scenario(part) for part in weights}
    for part, scenario in parts.items():
        special = next((need for need in scenario.needs if need.changes_users), None)
        if special is not None and len(parts) > 1:
            raise InvalidInput(
                f"{name}: {part} cannot be mixed: the users of the others would have {special}, too"
            )
        others = [one for other, one in parts.items() if other != part]
        if scenario.revokes_tokens and any(one.uses_tokens for one in others):
            raise InvalidInput(
                f"{name}: {part} cannot be mixed with scenarios that use tokens: Keystone revokes "
                "those of a user who leaves a group"
            )
    steps, mix = mixed(*((parts[part].steps, weight) for part, weight in weights.items()))
    total = sum(weights.values())
    shares = ", ".join(f"{weights[part] / total:.3g} {parts[part].request}" for part in weights)
    needs = dict.fromkeys(need for scenario in parts.values() for need in scenario.needs)
    left = dict.fromkeys(what for one in parts.values() for what in one.leaves_with_users)
    return Scenario(
        name,
        _title(name, weights),
        f"one of: {shares}",
        steps,
        values={
            column: rows for scenario in parts.values() for column, rows in scenario.values.items()
        },
        makes=tuple(dict.fromkeys(made for scenario in parts.values() for made in scenario.makes)),
        needs=tuple(needs),
        leaves_with_users=tuple(left),
        mix=mix,
    )


def _title(name: str, parts: Iterable[str]) -> str:
    if hosts.is_of_hosts(name):
        count = hosts.hosts_of(name)
        asking = "host in use asks" if count == 1 else "hosts in use ask"
        return f"what {count:,} compute {asking}"
    return f"mix of {' and '.join(parts)}"


def _scenario(name: str) -> Scenario:
    if scenario := SCENARIOS.get(name) or _BY_LONG_NAME.get(name):
        return scenario
    raise unknown(name)


def unknown(name: str, others: Iterable[str] = (), hint: str = "") -> InvalidInput:
    """Return the error about a name; `others` are known elsewhere, which `hint` says."""
    if near := get_close_matches(name, (*SCENARIOS, *others), 1):
        return InvalidInput(
            f"no scenario {name!r}; did you mean {near[0]!r}? loadstone capacity --help lists all "
            "scenarios"
        )
    known = ", ".join(sorted(SCENARIOS))
    return InvalidInput(
        f"no scenario {name!r}; choose from {known}; a mix such as mix:issue=1,validate=9{hint}"
    )
