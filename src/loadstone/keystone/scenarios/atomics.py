"""The actions of an iteration as Rally nests them, from the names of its steps.

A step's action is a path: "keystone_v3.create_users/keystone_v3.create_user#2/keystone_v3.add_role"
is the request add_role inside of the second create_user inside of create_users. Steps side by side
with the same path are one action of several requests. Requests that Rally makes outside of every
action are named "keystoneauth.*".

An action lasts from the due time of its first step to the end of its last one; as a step is due
when the one before has ended, that is the sum of its steps' latencies. In Rally's statistics an
iteration's actions of one name and level are added up, and their number is `count_per_iteration`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

OUTSIDE = "keystoneauth."


@dataclass(frozen=True, slots=True)
class Atomic:
    """One action, and those inside of it."""

    name: str
    first: int  # index of its first step
    last: int
    children: tuple["Atomic", ...] = ()

    @property
    def is_outside(self) -> bool:
        """Whether Rally counts it to no action, only to the iteration."""
        return self.name.startswith(OUTSIDE)


def atomics(actions: Sequence[str]) -> tuple[Atomic, ...]:
    """Give the tree of the actions of an iteration with these steps."""
    return _level([(index, action.split("/")) for index, action in enumerate(actions)])


def _level(steps: list[tuple[int, list[str]]]) -> tuple[Atomic, ...]:
    found = []
    for marked, group in groupby(steps, key=lambda step: step[1][0]):
        members = list(group)
        inner = [(index, path[1:]) for index, path in members if len(path) > 1]
        name = marked.partition("#")[0]
        found.append(Atomic(name, members[0][0], members[-1][0], _level(inner)))
    return tuple(found)
