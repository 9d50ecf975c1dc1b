"""Rally's nested atomic actions, derived from the names of an iteration's steps.

A step's action is a path: "keystone_v3.create_users/keystone_v3.create_user#2/keystone_v3.add_role"
is the request add_role in the second create_user in create_users. Adjacent steps with the same path
are one action with several requests. Requests that Rally makes outside any action are named
"keystoneauth.*".

An action lasts from the due time of its first step to the end of its last one. Because a step is
due when the previous one has ended, this is the sum of its steps' latencies. In Rally's statistics
an iteration's actions with the same name and level are added up; their number is
`count_per_iteration`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

OUTSIDE = "keystoneauth."  # requests that Rally counts towards no action


@dataclass(frozen=True, slots=True)
class Atomic:
    """An action and its nested actions."""

    name: str
    first: int  # index of its first step
    last: int
    children: tuple["Atomic", ...] = ()


def atomics(actions: Sequence[str]) -> tuple[Atomic, ...]:
    """Return the tree of actions of an iteration with these steps."""
    return _level([(index, action.split("/")) for index, action in enumerate(actions)])


def _level(steps: list[tuple[int, list[str]]]) -> tuple[Atomic, ...]:
    found = []
    for marked, group in groupby(steps, key=lambda step: step[1][0]):
        members = list(group)
        inner = [(index, path[1:]) for index, path in members if len(path) > 1]
        name = marked.partition("#")[0]
        found.append(Atomic(name, members[0][0], members[-1][0], _level(inner)))
    return tuple(found)
