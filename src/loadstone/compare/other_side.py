"""Tells each side of a comparison in turns which processes belong to the other side."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from loadstone.monitor.service import Members, ServiceProcess
from loadstone.monitor.sources.processes import OtherSide
from loadstone.target.target import Target


@contextmanager
def knowing_each_other(a: Target, b: Target) -> Iterator[tuple[Target, Target]]:
    """Yield two targets that count each other's CPU time apart from that of other programs."""
    pair = (_with_other_side(a, b), _with_other_side(b, a))
    with ExitStack() as readings:
        for target in pair:
            if target.watch is not None and target.other_side() is not None:
                source = OtherSide(target.other_side)
                readings.enter_context(target.watch.monitor.reading([source]))
        yield pair


def _with_other_side(target: Target, other: Target) -> Target:
    members: Members = other.members

    def others() -> tuple[ServiceProcess, ...] | None:
        found = members()
        if found is None:
            return None
        own = {one.pid for one in target.members() or ()}  # both may be one service
        return tuple(one for one in found if one.pid not in own)

    return replace(target, other_side=others)
