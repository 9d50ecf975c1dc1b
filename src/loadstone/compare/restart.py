"""Starts the Keystone of both sides anew between pairs of trials.

Both are started at the same time, so that both get the same kind of memory. Of two that start one
after the other, the first gets what was freed last, which is scattered more: on a virtual machine
it took 2 to 6 % more CPU for a validation.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from signal import Signals

from loadstone.errors import EnvironmentUnusable, MeasurementInvalid
from loadstone.faults import balancer, parts
from loadstone.faults.journal import Owner, Undo, UndoJournal
from loadstone.faults.pending import lab_target
from loadstone.faults.watcher import watched
from loadstone.lab import composition, processes
from loadstone.lab.state import Record
from loadstone.target.target import Target


@dataclass(frozen=True, slots=True)
class TwoLabs:
    """Two labs whose Keystone can be started anew."""

    folders: tuple[Path, Path]

    def restart(self, random: Random) -> None:
        """End Keystone in both labs, then start it in both at the same time, in random order.

        Raises MeasurementInvalid if it does not start again.
        """
        with ExitStack() as guards:
            for folder in self.folders:
                guards.enter_context(_started_if_killed(folder))
            order = random.sample(self.folders, len(self.folders))
            served = [(folder, record) for folder in order for record in _records(folder)]
            with ThreadPoolExecutor() as pool:  # uWSGI takes a second to end
                list(pool.map(_stop, (record for _, record in served)))
            launched = [parts.launch(folder, record.part) for folder, record in served]
            for (folder, _), (part, process) in zip(served, launched, strict=True):
                if process is not None:
                    with _serving(folder):
                        composition.await_health(part, process)
            for folder in self.folders:
                with _serving(folder):
                    balancer.await_all(folder)


def two_labs(sides: Sequence[Target]) -> TwoLabs | None:
    """Return the labs of both sides.

    None unless both are labs of this machine that nothing else is measuring: another Keystone is
    not ours to restart.
    """
    a, b = (one.lab for one in sides)
    if a is None or b is None or a == b or any(one.beside for one in sides):
        return None
    return TwoLabs((a, b)) if _records(a) and _records(b) else None


def _stop(record: Record) -> None:
    if record.process is not None:
        processes.stop(record.process, stop_signal=Signals(record.ask))


def _records(folder: Path) -> Sequence[Record]:
    """Return the parts that serve Keystone."""
    kinds = parts.SERVICES["keystone"]
    return [
        one
        for one in parts.read_state(folder).records
        if one.process is not None and parts.kind_of(one.part) in kinds
    ]


def _started_if_killed(folder: Path) -> AbstractContextManager[None]:
    """Have the parts of a lab that outlives this process started, if it is killed in between."""
    return nullcontext() if parts.read_state(folder).is_owned else _watched(folder)


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    journal, owner = UndoJournal.of(lab_target(folder.name)), Owner.this()
    with watched(journal, owner):
        run = parts.read_state(folder).run
        steps = [journal.note(Undo.START, one.part, owner, run) for one in _records(folder)]
        yield
        for step in steps:
            journal.remove(step)


@contextmanager
def _serving(folder: Path) -> Iterator[None]:
    try:
        yield
    except EnvironmentUnusable as problem:
        raise MeasurementInvalid(f"lab {folder.name} does not start again: {problem}") from None
