"""Worker processes: started from a clean server process, told what to do, replaced when lost."""

import multiprocessing
import os
import selectors
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from loadstone.engine.callables import worker
from loadstone.engine.callables.model import CallPlan
from loadstone.errors import InvalidInput

END_S = 2.0  # for an idle worker to leave of its own accord
Message = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time and time spent waiting for a core."""

    cpu_s: float = 0.0
    runqueue_wait_s: float = 0.0

    def plus(self, other: "Cost", sign: int = 1) -> "Cost":
        """Add another one."""
        return Cost(
            self.cpu_s + sign * other.cpu_s,
            self.runqueue_wait_s + sign * other.runqueue_wait_s,
        )


@dataclass(eq=False, slots=True)
class Member:
    """One worker process and what it is at."""

    slot: int
    process: BaseProcess
    pipe: Connection
    is_ready: bool = False
    free_since_ns: int = 0
    job: Any = None
    began_with: Cost = Cost()


@dataclass(slots=True)
class Crew:
    """All workers of a run."""

    plan: CallPlan
    members: list[Member] = field(default_factory=list)
    spent: Cost = Cost()  # by members that are gone
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    slots: int = 0

    def start(self, count: int) -> None:
        """Start so many more."""
        context = multiprocessing.get_context("forkserver")
        # What is imported there is not imported by each worker again; "__main__" is the program
        # itself, which a worker would begin with otherwise.
        imports = ["__main__", worker.__name__, *self.plan.function.imports]
        context.set_forkserver_preload(imports)
        for _ in range(count):
            ours, theirs = context.Pipe()
            plan = self.plan
            process = context.Process(
                target=worker.main,
                args=(theirs, plan.function, dict(plan.arguments), dict(plan.settings)),
                daemon=True,
            )
            process.start()
            theirs.close()
            member = Member(self.slots, process, ours)
            self.slots += 1
            self.members.append(member)
            self.selector.register(ours, selectors.EVENT_READ, member)

    def ready(self, member: Member, at_ns: int) -> None:
        """Note that a worker can be given work."""
        member.is_ready, member.free_since_ns = True, at_ns
        member.began_with = cost(member.process.pid)

    def free(self) -> list[Member]:
        """Give those that could begin at once."""
        return [one for one in self.members if one.is_ready and one.job is None]

    def heard(self, timeout_s: float) -> Iterator[tuple[Member, Message | None]]:
        """Give what workers said, waiting at most so long; None: that worker is gone."""
        for key, _ in self.selector.select(max(timeout_s, 0.0)):
            member: Member = key.data
            try:
                while True:
                    yield member, member.pipe.recv()
                    if member.pipe.closed or not member.pipe.poll():
                        break
            except (EOFError, OSError):
                yield member, None

    def drop(self, member: Member) -> int | None:
        """Kill a worker (or bury it) and give its exit code."""
        self.selector.unregister(member.pipe)
        self.members.remove(member)
        self.spent = self.spent.plus(cost(member.process.pid).plus(member.began_with, -1))
        member.process.kill()
        member.process.join()
        member.pipe.close()
        code = member.process.exitcode
        member.process.close()
        return code

    def cost(self) -> Cost:
        """Give what all have spent since each was ready."""
        spent = self.spent
        for member in self.members:
            if member.is_ready:
                spent = spent.plus(cost(member.process.pid).plus(member.began_with, -1))
        return spent

    def end(self) -> None:
        """Let idle workers leave, and kill the others."""
        for member in self.members:
            if member.is_ready and member.job is None:
                with suppress(OSError):
                    member.pipe.send(None)
            else:
                member.process.kill()
        for member in list(self.members):
            member.process.join(END_S)
            self.drop(member)
        self.selector.close()


def refused(plan: CallPlan, why: str) -> InvalidInput:
    """Say that the function cannot be had."""
    return InvalidInput(f"{plan.function} cannot be loaded: {why}")


def cost(pid: int | None) -> Cost:
    """Give what a process has spent, as far as the kernel tells; nothing when it is gone."""
    total = Cost()
    with suppress(OSError, ValueError, IndexError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            cpu_ns, wait_ns, _ = (task / "schedstat").read_text().split()
            total = total.plus(Cost(int(cpu_ns) / 1e9, int(wait_ns) / 1e9))
    return total


def cores() -> int:
    """Give how many cores this process may use."""
    return len(os.sched_getaffinity(0))
