"""Hooks: commands that a load triggers, each in a thread of its own."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Lock, Thread
from typing import Literal, Self, assert_never

from loadstone.engine.progress import Progress
from loadstone.task.hook_run import HookRun, Output, charts
from loadstone.task.model import Event, Hook, Periodic

MOST_TEXT = 65_536  # characters kept of what a command says
# A command that is told to end has five seconds for it.
_TURN_S, _PATIENT_TURNS = 0.1, 50


def moments(trigger: Event | Periodic, first: int, last: int) -> Iterator[int]:
    """Give the seconds or iterations from `first` to `last` at which the hook acts."""
    match trigger:
        case Event(at=at):
            yield from sorted(value for value in at if first <= value <= last)
        case Periodic(step=step, start=start, end=end):
            behind = max(first - start, 0)
            begin = start + (behind + step - 1) // step * step
            yield from range(begin, min(last, last if end is None else end) + 1, step)
        case _:
            assert_never(trigger)


@dataclass(slots=True)
class Hooks:
    """The hooks of one load; leaving it early ends their commands."""

    hooks: Sequence[Hook]
    _seen: dict[str, int] = field(default_factory=lambda: {"time": -1, "iteration": 0})
    _threads: list[Thread] = field(default_factory=list)
    _running: set[int] = field(default_factory=set)
    _runs: list[HookRun] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._end()

    def look(self, progress: Progress) -> None:
        """Start what is due by now."""
        if progress.due:
            self._reach("iteration", progress.due)
            self._reach("time", int(progress.elapsed_s))

    def finished(self, iterations: int, load_s: float) -> tuple[HookRun, ...]:
        """Start what the last moment of the load triggered, wait for all, and give what came."""
        if iterations:
            self._reach("iteration", iterations)
            self._reach("time", int(load_s))
        for thread in self._threads:
            thread.join()
        return tuple(sorted(self._runs, key=lambda run: (run.hook, run.value)))

    def _reach(self, unit: Literal["time", "iteration"], value: int) -> None:
        first, self._seen[unit] = self._seen[unit] + 1, max(value, self._seen[unit])
        for number, hook in enumerate(self.hooks):
            if hook.trigger.unit == unit:
                for moment in moments(hook.trigger, first, value):
                    self._start(number, unit, moment)

    def _start(self, number: int, unit: str, moment: int) -> None:
        thread = Thread(target=self._act, args=(number, unit, moment), name=f"hook {number}")
        self._threads.append(thread)
        thread.start()

    def _act(self, number: int, unit: str, moment: int) -> None:
        command = self.hooks[number].action.command
        began_s = time.time()
        error, output = self._called(command)
        run = HookRun(number, unit, moment, began_s, time.time(), output, error)
        with self._lock:
            self._runs.append(run)

    def _called(self, command: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as problem:
            why = f"{command[0]} cannot be started: {problem.strerror}"
            return (why, why), json.dumps({"additive": [], "complete": []})
        with self._lock:
            self._running.add(process.pid)
        out, err = process.communicate()
        with self._lock:
            self._running.discard(process.pid)
        out, err = out[:MOST_TEXT], err[:MOST_TEXT]
        code = process.returncode
        failed = (f"Subprocess returned {code}", err or f"stdout: {out}") if code else None
        return failed, json.dumps(_charts(out) or _text(command, code, out, err))

    def _end(self) -> None:
        for turn in count():
            alive = [thread for thread in self._threads if thread.is_alive()]
            if not alive:
                return
            with self._lock, suppress(ProcessLookupError):
                for pid in self._running:
                    os.killpg(pid, signal.SIGTERM if turn < _PATIENT_TURNS else signal.SIGKILL)
            alive[0].join(_TURN_S)


def _charts(out: str) -> Output | None:
    """Give the charts that a command prints as JSON; None: it printed something else."""
    try:
        return charts(json.loads(out))
    except ValueError:
        return None


def _text(command: Sequence[str], code: int, out: str, err: str) -> Output:
    area = {
        "title": "System call",
        "chart_plugin": "TextArea",
        "description": f"Args: {shlex.join(command)}",
        "data": [
            f"RetCode: {code}",
            f"StdOut: {out or '(empty)'}",
            f"StdErr: {err or '(empty)'}",
        ],
    }
    return {"additive": [], "complete": [area]}
