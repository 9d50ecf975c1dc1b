"""One part of a load in a process of its own, as another machine would send it."""

import contextlib
import multiprocessing
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from loadstone.engine import gate
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.model import Plan

ALLOWED = gate.Allowance(max_rate_rps=1e6, load_s=60.0)


@dataclass(frozen=True)
class Part:
    """A process that has prepared its part."""

    pipe: Connection

    def start(self, at_ns: int) -> None:
        self.pipe.send(at_ns)

    def stop_at(self, due_ns: int) -> None:
        self.pipe.send(due_ns)

    def receive(self) -> object:
        """Return the next thing that the process sends; raise an error that it had."""
        received: object = self.pipe.recv()
        if isinstance(received, Exception):
            raise received
        return received

    def finish(self) -> gate.LoadResult:
        """Wait for the end and return what the process measured."""
        measured = self.receive()
        assert isinstance(measured, gate.LoadResult)
        return measured


@contextmanager
def parts_of(plan: Plan, count: int) -> Iterator[Sequence[Part]]:
    """Prepare the parts of a load, each in a process; the processes end with the block."""
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        parts = []
        for number in range(count):
            here, there = context.Pipe()
            placement = replace(plan.placement, part=number, parts=count)
            args = (there, replace(plan, placement=placement))
            process = context.Process(target=_send, args=args)
            process.start()
            there.close()
            stack.callback(process.join)
            parts.append(Part(here))
        for part in parts:
            stack.callback(part.pipe.close)
        for part in parts:
            assert part.receive() == "ready"
        yield parts


def _send(pipe: Connection, plan: Plan) -> None:
    try:
        with gate.prepare(plan, ALLOWED) as prepared:
            pipe.send("ready")
            prepared.start(pipe.recv())
            threading.Thread(target=_stop, args=(pipe, prepared), daemon=True).start()
            pipe.send(prepared.finish())
    except EnvironmentUnusable as error:
        pipe.send(error)
    except EOFError:
        pass  # the test has ended before the start


def _stop(pipe: Connection, prepared: gate.PreparedRun[gate.LoadResult]) -> None:
    with contextlib.suppress(EOFError, OSError):
        prepared.stop_at(pipe.recv())
