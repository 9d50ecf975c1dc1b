"""Mixes of scenarios by their names: mix:issue=1,validate=9, or mix:cloud-100 of compute hosts."""

from math import inf, nan

from loadstone.errors import InvalidInput
from loadstone.plan import hosts

MIX = "mix:"


def is_mix(name: str) -> bool:
    """Return whether a name is that of a mix."""
    return name.startswith(MIX)


def weights_of(name: str) -> dict[str, float]:
    """Return the scenarios of a mix with their weights; InvalidInput if one is invalid."""
    if hosts.is_of_hosts(name):
        return hosts.rates_of(name)
    pairs = [_weight(part) for part in name.removeprefix(MIX).split(",")]
    weights = dict(pairs)
    if len(weights) < len(pairs):
        raise InvalidInput(f"{name}: names a scenario twice")
    if len(weights) == 1:  # as mix:issue=1,validate does, which lacks a weight
        raise InvalidInput(
            f"{name}: is a mix of one scenario; give each a weight, as mix:issue=1,validate=9"
        )
    return weights


def _weight(part: str) -> tuple[str, float]:
    name, _, weight = part.partition("=")
    try:
        value = float(weight)
    except ValueError:
        value = nan
    if not 0 < value < inf:
        raise InvalidInput(f"mix: must be NAME=WEIGHT with a weight above 0, not {part!r}")
    return name, value
