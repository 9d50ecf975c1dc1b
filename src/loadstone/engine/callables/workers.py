"""Worker processes, started from a clean server process and replaced when lost."""

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

from loadstone.engine.callables import worker as worker_process
from loadstone.engine.callables.model import CallPlan

END_S = 2.0  # for an idle worker to exit by itself
Message = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time and time spent waiting for a core."""

    cpu_s: float = 0.0
    runqueue_wait_s: float = 0.0

    def plus(self, other: "Cost", sign: int = 1) -> "Cost":
        """Add or subtract another cost."""
        return Cost(
            self.cpu_s + sign * other.cpu_s,
            self.runqueue_wait_s + sign * other.runqueue_wait_s,
        )


@dataclass(eq=False, slots=True)
class Worker:
    """One worker process and its current job."""

    slot: int
    process: BaseProcess
    pipe: Connection
    is_ready: bool = False
    free_since_ns: int = 0
    job: Any = None
    began_with: Cost = Cost()


@dataclass(slots=True)
class WorkerPool:
    """All workers of a run."""

    plan: CallPlan
    workers: list[Worker] = field(default_factory=list)
    spent: Cost = Cost()  # of workers that have ended
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    slots: int = 0

    def start(self, count: int) -> None:
        """Start this many more workers."""
        context = multiprocessing.get_context("forkserver")
        # Modules that are imported here need not be imported by each worker. "__main__" is the
        # program itself, which a worker would otherwise import.
        imports = ["__main__", worker_process.__name__, *self.plan.function.imports]
        context.set_forkserver_preload(imports)
        for _ in range(count):
            ours, theirs = context.Pipe()
            plan = self.plan
            process = context.Process(
                target=worker_process.main,
                args=(
                    theirs,
                    plan.function,
                    dict(plan.arguments),
                    dict(plan.settings),
                    plan.loopback_only,
                ),
                daemon=True,
            )
            process.start()
            theirs.close()
            worker = Worker(self.slots, process, ours)
            self.slots += 1
            self.workers.append(worker)
            self.selector.register(ours, selectors.EVENT_READ, worker)

    def ready(self, worker: Worker, at_ns: int) -> None:
        """Record that a worker is ready."""
        worker.is_ready, worker.free_since_ns = True, at_ns
        worker.began_with = cost(worker.process.pid)

    def free(self) -> list[Worker]:
        """Return the workers that can start an iteration at once."""
        return [one for one in self.workers if one.is_ready and one.job is None]

    def messages(self, timeout_s: float) -> Iterator[tuple[Worker, Message | None]]:
        """Yield messages from workers, waiting at most this long; None: that worker has ended."""
        for key, _ in self.selector.select(max(timeout_s, 0.0)):
            worker: Worker = key.data
            try:
                while True:
                    yield worker, worker.pipe.recv()
                    if worker.pipe.closed or not worker.pipe.poll():
                        break
            except (EOFError, OSError):
                yield worker, None

    def drop(self, worker: Worker) -> int | None:
        """Kill a worker if it lives, and return its exit code."""
        self.selector.unregister(worker.pipe)
        self.workers.remove(worker)
        self.spent = self.spent.plus(_used(worker))
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        code = worker.process.exitcode
        worker.process.close()
        return code

    def cost(self) -> Cost:
        """Return what all workers have used since each became ready."""
        spent = self.spent
        for worker in self.workers:
            spent = spent.plus(_used(worker))
        return spent

    def end(self) -> None:
        """Let idle workers exit, and kill the others."""
        for worker in self.workers:
            if worker.is_ready and worker.job is None:
                with suppress(OSError):
                    worker.pipe.send(None)
            else:
                worker.process.kill()
        for worker in list(self.workers):
            worker.process.join(END_S)
            self.drop(worker)
        self.selector.close()


def _used(worker: Worker) -> Cost:
    """Return what a worker has used since it became ready; zero if it has ended by itself."""
    used = cost(worker.process.pid).plus(worker.began_with, -1)
    return used if worker.is_ready and used.cpu_s > 0 else Cost()


def cost(pid: int | None) -> Cost:
    """Return what a process has used; zero if it has ended."""
    total = Cost()
    with suppress(OSError, ValueError, IndexError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            cpu_ns, wait_ns, _ = (task / "schedstat").read_text().split()
            total = total.plus(Cost(int(cpu_ns) / 1e9, int(wait_ns) / 1e9))
    return total


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))
