"""Combinations to try first: what the audit's rules advise for a service like the default."""

from collections.abc import Iterator

from loadstone.audit.rule import every
from loadstone.tune.space import Pairs, Space


def suggestions(space: Space, cpus: int) -> tuple[tuple[Pairs, str], ...]:
    """Return all advice together, then each piece alone, with the rules that give it."""
    found = dict[Pairs, list[str]]()
    for changes, rule_id in _advised(space, cpus):
        found.setdefault(changes, []).append(rule_id)
    single = [(changes, f"audit {', '.join(rules)}") for changes, rules in found.items()]
    if len(single) < 2:
        return tuple(single)
    every_rule = ", ".join(rule_id for rules in found.values() for rule_id in rules)
    together = space.in_order(tuple(one for changes in found for one in changes))
    return ((together, f"audit {every_rule}"), *single)


def _advised(space: Space, cpus: int) -> Iterator[tuple[Pairs, str]]:
    for rule in every():
        if rule.proof is None:
            continue
        words = [word.partition("=") for word in rule.proof.fix_for(cpus)]
        changes = space.in_order(tuple((key, value) for key, _, value in words))
        if changes:
            yield changes, rule.id
