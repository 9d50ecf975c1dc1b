"""Rally's atomic actions, derived from the names of an iteration's steps.

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
    """An action that is in no other one, with its nested actions."""

    name: str
    first: int  # index of its first step
    last: int


def atomics(actions: Sequence[str]) -> tuple[Atomic, ...]:
    """Return the outer actions of an iteration with these steps."""
    found = []
    for marked, group in groupby(enumerate(actions), key=lambda step: step[1].split("/")[0]):
        numbers = [number for number, _ in group]
        found.append(Atomic(marked.partition("#")[0], numbers[0], numbers[-1]))
    return tuple(found)
