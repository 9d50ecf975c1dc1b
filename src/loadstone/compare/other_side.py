"""Tells each side of a comparison in turns which processes belong to the other side."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from loadstone.monitor.service import Members
from loadstone.monitor.sources.processes import OtherSide
from loadstone.system.say import Say
from loadstone.target.target import Target


@contextmanager
def knowing_each_other(a: Target, b: Target, say: Say) -> Iterator[tuple[Target, Target]]:
    """Yield two targets that count each other's CPU time apart from that of other programs.

    Where both are served by the same processes, the cost of one side's requests is unknown, so
    neither side's resources are read.
    """
    if _pids(a.members) & _pids(b.members):
        say(
            "  Both sides are served by the same processes, so the CPU and SQL statements of one "
            "side's requests cannot be told apart from the other's: they are not compared."
        )
        yield _without_processes(a), _without_processes(b)
        return
    pair = (replace(a, other_side=b.members), replace(b, other_side=a.members))
    with ExitStack() as readings:
        for target in pair:
            if target.watch is not None and target.other_side() is not None:
                source = OtherSide(target.other_side)
                readings.enter_context(target.watch.monitor.reading([source]))
        yield pair


def _pids(members: Members) -> set[int]:
    return {one.pid for one in members() or ()}


def _without_processes(target: Target) -> Target:
    return replace(target, members=lambda: None, watch=None)
