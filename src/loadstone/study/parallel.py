"""Runs a study on the lab hosts of a fleet in parallel, one turn at a time on each host."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from loadstone.errors import EnvironmentUnusable
from loadstone.result.model import Tags
from loadstone.study.journal import StudyJournal, TurnResult
from loadstone.study.order import Turn, turns
from loadstone.study.placing import LabSlot, blocks, is_usable, next_turn
from loadstone.study.turn_process import TurnOrder, serve
from loadstone.system.say import Say

END_S = 120.0  # time to remove users and deployments after Ctrl-C
ENDED = "the process that measured it ended"
UNUSABLE = EnvironmentUnusable.exit_code


@dataclass(frozen=True, slots=True)
class _Started:
    turn: Turn
    slot: LabSlot
    process: SpawnProcess


@dataclass(slots=True)
class ParallelStudy:
    """The turns of a study, on several lab hosts."""

    journal: StudyJournal
    slots: tuple[LabSlot, ...]
    command: str
    beyond_loopback: bool
    say: Say
    tags: Tags = ()  # of every run
    _running: dict[Connection, _Started] = field(default_factory=dict)
    _has_measured: set[str] = field(default_factory=set)  # hosts

    def carry_out(self) -> None:
        """Measure the missing turns, as `study.run.carry_out` does in sequence."""
        study = self.journal.begun.study()
        order = turns(study, self.journal.begun.seed)
        block = blocks(study, order)
        names = {one.host for one in self.slots}
        with self.journal.locked():
            ended = self.journal.ended()
            hosts = {
                block[one.turn]: one.host
                for one in ended.values()
                if one.run_id is not None and one.host in names
            }
            missing = [t for t in order if t.number not in ended or not ended[t.number].is_done]
            measured = {number for number, one in ended.items() if one.run_id is not None}
            try:
                doubtful = self._measure(missing, block, hosts, measured)
                if doubtful:
                    self.say("once more, for the load generator was the limit:")
                    self._measure(doubtful, block, hosts, measured)
            finally:
                self._end()

    def _measure(
        self,
        missing: Sequence[Turn],
        block: dict[int, int],
        hosts: dict[int, str],
        measured: set[int],
    ) -> list[Turn]:
        """Measure turns; return those in which the load generator was the limit.

        The turns of a lost lab host go to the others. A failure does not replace the result of a
        turn that was `measured` before.
        """
        left, doubtful = list(missing), []
        while left or self._running:
            busy = {one.slot.host for one in self._running.values()}
            for slot in (one for one in self.slots if one.host not in busy):
                turn = next_turn(left, block, hosts, slot.host)
                if turn is not None:
                    left.remove(turn)
                    hosts[block[turn.number]] = slot.host
                    self._start(turn, slot)
            for pipe in [one for one in wait(list(self._running)) if isinstance(one, Connection)]:
                started = self._running[pipe]
                result = self._receive(pipe, started)
                if result is None:
                    continue
                if result.failure is not None and not is_usable(started.slot):
                    self._lose(started.slot, hosts)
                    left.insert(0, started.turn)
                    continue
                if result.run_id is not None or result.turn not in measured:
                    self.journal.add(result)
                if result.run_id is not None:
                    measured.add(result.turn)
                if not result.is_valid:
                    doubtful.append(started.turn)
        return doubtful

    def _lose(self, slot: LabSlot, hosts: dict[int, str]) -> None:
        """Remove a lost lab host; its results are kept."""
        self.slots = tuple(one for one in self.slots if one != slot)
        for block in [number for number, host in hosts.items() if host == slot.host]:
            del hosts[block]
        if not self.slots:
            raise EnvironmentUnusable(
                f"lab host {slot.host} or its load hosts were lost, and there are no others; go "
                f"on with --resume {self.journal.study_id}"
            )
        self.say(f"lab host {slot.host} or its load hosts were lost; the others go on")

    def _start(self, turn: Turn, slot: LabSlot) -> None:
        study = self.journal.begun.study()
        count = len(study.cells) * study.repeats
        self.say(f"{slot.host}: [{turn.number}/{count}] {turn.cell} (repeat {turn.repeat})")
        pause_s = study.pause_s if slot.host in self._has_measured else 0.0
        self._has_measured.add(slot.host)
        order = TurnOrder(
            self.journal.store,
            self.journal.study_id,
            turn.number,
            self.command,
            slot,
            self.beyond_loopback,
            pause_s,
            self.tags,
        )
        ours, theirs = get_context("spawn").Pipe()
        process = get_context("spawn").Process(target=serve, args=(order, theirs))
        process.start()
        theirs.close()
        self._running[ours] = _Started(turn, slot, process)

    def _receive(self, pipe: Connection, started: _Started) -> TurnResult | None:
        """Receive a line or the result of a process; return only the result."""
        try:
            message: str | TurnResult = pipe.recv()
        except EOFError:
            message = TurnResult(started.turn.number, None, ENDED, UNUSABLE, host=started.slot.host)
        if isinstance(message, str):
            self.say(f"{started.slot.host}: {message}")
            return None
        if message.failure is not None:
            self.say(
                f"{started.slot.host}: {started.turn.cell} failed, the study goes on: "
                f"{message.failure}"
            )
        del self._running[pipe]
        started.process.join()
        pipe.close()
        return message

    def _end(self) -> None:
        """Interrupt the running processes, as by Ctrl-C; show their last lines, keep their runs."""
        for one in self._running.values():
            if one.process.pid is not None and one.process.is_alive():
                os.kill(one.process.pid, signal.SIGINT)
        for pipe, one in self._running.items():
            with suppress(EOFError, OSError):
                while pipe.poll(END_S):
                    message = pipe.recv()
                    if isinstance(message, str):
                        self.say(f"{one.slot.host}: {message}")
                    elif message.run_id is not None:  # it had ended before the interrupt
                        self.journal.add(message)
            one.process.join(END_S)
            one.process.kill()
