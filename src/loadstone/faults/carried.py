"""Faults in a run: checked before the load, undone at its end whatever happens.

The injectors are imported where they are used: they import the code that deploys labs, which a run
without faults does not need.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import pending
from loadstone.faults.journal import FaultTarget, Owner, UndoJournal
from loadstone.faults.model import FaultCommands, FaultRecord, Planned
from loadstone.faults.observer import FaultListener, Faults, Injector
from loadstone.faults.sentence import Fault, Verb, read
from loadstone.plan.hooks import FaultInjection, Hook
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.say import Say

HELD_S = 3600.0  # longer than any measurement
POLL_S = 0.1  # between two looks whether a fault is in force
NOTICED_S = 12.0  # three failed checks of the lab's haproxy, 2 s apart, with a slow one between


@dataclass(frozen=True, slots=True)
class FaultRunner:
    """Carries out the faults of a run."""

    target: FaultTarget
    commands: FaultCommands | None  # None: on a lab
    run_id: str
    lab_host: str | None = None  # of a lab on another machine
    clock: Clock = SYSTEM

    def require_possible(
        self, planned: Sequence[Planned], hooks: Sequence[Hook], held: Fault | None
    ) -> None:
        """Raise InvalidInput, before any load, for a fault that the target cannot have."""
        actions = (one.action for one in hooks)
        faults = [one.fault for one in planned] + ([held] if held else [])
        hooked = [read(one.sentence) for one in actions if isinstance(one, FaultInjection)]
        for fault in hooked:
            self._require_hookable(fault)
        for fault in (*faults, *hooked):
            self._injector(fault).check(fault)

    def _require_hookable(self, fault: Fault) -> None:
        """Raise InvalidInput for a fault of a hook that must be known before the load."""
        is_prepared = self.commands is None and fault.verb in (Verb.CONFIGURE, Verb.UPGRADE)
        if is_prepared or fault.verb is Verb.OVERLOAD:
            why = "is prepared before the load" if is_prepared else "is part of the load"
            raise InvalidInput(
                f"fault {fault.sentence!r}: {why}, so that a hook cannot do it; use loadstone "
                f"fault --do {fault.sentence!r}"
            )

    @contextmanager
    def undoing(self, say: Say) -> Iterator[None]:
        """Undo all faults at the end of the block."""
        with undoing(self._journal, Owner.this(self.run_id), say):
            yield

    def observer(self, planned: Sequence[Planned], say: Say, mark: FaultListener) -> Faults:
        """Return the observer that injects the faults of one trial."""
        injector = self._injector(planned[0].fault if planned else None)
        return Faults(injector, planned, say, mark, self.clock)

    @contextmanager
    def hold(self, fault: Fault | None, say: Say) -> Iterator[None]:
        """Hold a fault during this block, which starts when the balancer has noticed the fault."""
        if fault is None:
            yield
            return
        injector = self._injector(fault)
        record: Future[FaultRecord] = Future()
        held = replace(fault, hold_s=HELD_S)
        thread = self.clock.thread(lambda: _complete(record, lambda: injector.inject(held)))
        thread.start()
        try:
            while not (injector.begun.is_set() or record.done()):  # a command may take minutes
                self.clock.sleep(POLL_S)
            say(f"  {fault.sentence}; N is measured in {NOTICED_S:.0f} s, once a balancer noticed")
            self.clock.sleep(NOTICED_S)
            if record.done():  # it is not in force, and what follows would measure a whole service
                _require_success(record.result())
            yield
        finally:
            injector.over.set()
            thread.join()
        _require_success(record.result())
        injector.settle()

    @property
    def _journal(self) -> UndoJournal:
        return UndoJournal.of(self.target)

    def _injector(self, fault: Fault | None) -> Injector:
        from loadstone.faults.commands import CommandInjector
        from loadstone.faults.inject import LabInjector, LoadInjector

        if fault is not None and fault.verb is Verb.OVERLOAD:
            return LoadInjector(folder=self.target.lab, clock=self.clock)
        owner = Owner.this(self.run_id)
        if self.commands is not None:
            return CommandInjector(self._journal, self.commands, owner, clock=self.clock)
        return LabInjector(self._lab(fault), self._journal, owner, clock=self.clock)

    def _lab(self, fault: Fault | None) -> Path:
        if self.target.lab is None:
            what = "" if fault is None else f" {fault.sentence!r}"
            if self.lab_host is not None:
                raise InvalidInput(
                    f"fault{what}: is carried out on labs of this machine, and this one is on "
                    f"{self.lab_host}; give the commands of a file: --faults FILE"
                )
            raise InvalidInput(
                f"fault{what}: is carried out on a lab, chosen with --lab NAME, or by the commands "
                "of a file: --faults FILE"
            )
        return self.target.lab


@contextmanager
def undoing(journal: UndoJournal, owner: Owner, say: Say) -> Iterator[None]:
    """Undo what an owner's steps say at the end of the block, even if this process dies in it.

    Raises EnvironmentUnusable with what could not be undone.
    """
    from loadstone.faults.watcher import watched

    def left() -> str:
        steps = [step for step in journal.steps() if step.owner == owner]
        return pending.describe_failed(journal, steps) if steps else ""

    try:
        with watched(journal, owner):
            yield
    except BaseException:
        if what := left():
            say(what)
        raise
    if what := left():
        raise EnvironmentUnusable(what)


def _require_success(record: FaultRecord) -> None:
    if record.failure:
        raise EnvironmentUnusable(f"fault {record.fault.sentence!r}: {record.failure}")


def _complete(future: Future[FaultRecord], work: Callable[[], FaultRecord]) -> None:
    """Let a future have the outcome of some work."""
    try:
        future.set_result(work())
    except BaseException as problem:
        future.set_exception(problem)
