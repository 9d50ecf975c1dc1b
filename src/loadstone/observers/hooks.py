"""Runs hooks: commands triggered by a load, a few in parallel, each with a time limit."""

import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Event as Flag
from typing import IO, Literal, assert_never

from loadstone.analysis.model import Trial
from loadstone.engine.callables.charts import Output, charts
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.faults.model import FaultRecord
from loadstone.lab.guard import CommandGuard
from loadstone.plan.hooks import Event, FaultInjection, Hook, HookRun, Periodic, SysCall
from loadstone.result.observer import TrialObserver
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.redaction import Redaction, masked, masked_command

MOST_TEXT = 65_536  # characters kept of stdout and of stderr
MOST_AT_ONCE = 16  # parallel commands; further ones wait until one ends
MOST_RUNS = 10_000  # of all hooks of a workload; further triggers are ignored
GRACE_S = 5.0  # between SIGTERM and SIGKILL
_POLL_S = 0.1  # interval of checking whether the run was abandoned
_END_S = 0.005  # interval of checking whether a process that closed its pipes has ended
_SLACK = 4_096  # characters read beyond MOST_TEXT, so that a secret at the cut is replaced whole

Moment = tuple[int, str, int]  # number of the hook, unit, value
_NO_CHARTS = json.dumps({"additive": [], "complete": []})


def moments(trigger: Event | Periodic, first: int, last: int) -> Iterator[int]:
    """Return the seconds or iterations from `first` to `last` at which the hook is triggered."""
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
class Hooks(TrialObserver):
    """The hooks of one trial."""

    hooks: Sequence[Hook]
    redaction: Redaction
    timeout_s: float  # for each command, and for queued commands after the load
    # Injects a fault; None if no hook does.
    inject: Callable[[str], FaultRecord] | None = None
    clock: Clock = SYSTEM
    _seen: dict[str, int] = field(default_factory=lambda: {"time": -1, "iteration": 0})
    _runs: dict[Moment, Future[HookRun]] = field(default_factory=dict)
    _dropped: list[HookRun] = field(default_factory=list)
    _given_up: Flag = field(default_factory=Flag)
    _has_ended: bool = field(default=False, init=False)  # the load
    _guard: CommandGuard = field(default_factory=CommandGuard)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(MOST_AT_ONCE, "hook")
    )

    def on_progress(self, progress: Progress) -> bool:
        """Start the hooks that are due."""
        if progress.due:
            self._reach("iteration", progress.due)
            self._reach("time", int(progress.elapsed_s))
        return True

    def on_load_end(self, samples: Samples | SampleFile) -> None:  # noqa: ARG002
        """Begin no faults any more: nobody would notice them, and they would need to be undone."""
        self._has_ended = True

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add the hook runs."""
        return replace(trial, hook_runs=self._finished(trial.stats.due, trial.stats.load_s))

    def close(self) -> None:
        """Terminate the commands that still run."""
        self._given_up.set()
        self._pool.shutdown(cancel_futures=True)
        self._guard.close()

    def _finished(self, iterations: int, load_s: float) -> tuple[HookRun, ...]:
        """Start the hooks triggered last, wait for all, and return their runs.

        Hooks that have not started `timeout_s` after the load are not started.
        """
        if iterations:
            self._reach("iteration", iterations)
            self._reach("time", int(load_s))
        wait(self._runs.values(), self.timeout_s)
        # All at once, before a command that ends lets the pool start the next.
        cancelled = {moment for moment, one in self._runs.items() if one.cancel()}
        why = f"not started within {self.timeout_s:g} s after the load"
        ended = [
            _not_started(moment, self.clock, why) if moment in cancelled else one.result()
            for moment, one in self._runs.items()
        ]
        return tuple(sorted((*ended, *self._dropped), key=lambda run: (run.hook, run.value)))

    def _reach(self, unit: Literal["time", "iteration"], value: int) -> None:
        first, self._seen[unit] = self._seen[unit] + 1, max(value, self._seen[unit])
        for number, hook in enumerate(self.hooks):
            if hook.trigger.unit == unit:
                for moment in moments(hook.trigger, first, value):
                    if self._has_ended and isinstance(hook.action, FaultInjection):
                        why = "not started: its moment came as the load ended"
                        late = _not_started((number, unit, moment), self.clock, why)
                        self._dropped.append(late)
                        break
                    if not self._start((number, unit, moment)):
                        break

    def _start(self, moment: Moment) -> bool:
        """Start a hook, or queue it; return False once there were MOST_RUNS."""
        if len(self._runs) < MOST_RUNS:
            self._runs[moment] = self._pool.submit(self._act, moment)
            return True
        if moment[0] not in {run.hook for run in self._dropped}:
            message = f"not started, nor later ones: a workload has {MOST_RUNS:,} hook runs at most"
            self._dropped.append(_not_started(moment, self.clock, message))
        return False

    def _act(self, moment: Moment) -> HookRun:
        number, unit, value = moment
        began_s = self.clock.unix_s()
        match self.hooks[number].action:
            case SysCall(command=command):
                with self._guard.guarded() as environment:
                    error, output = self._run_command(command, environment)
            case FaultInjection() if self._has_ended:  # while it waited for another hook to end
                why = f"not started before the load ended: {MOST_AT_ONCE} other hooks ran"
                return _not_started(moment, self.clock, why)
            case FaultInjection(sentence=sentence):
                error, output = self._inject(sentence)
        return HookRun(number, unit, value, began_s, self.clock.unix_s(), output, error)

    def _inject(self, sentence: str) -> tuple[tuple[str, str] | None, str]:
        if self.inject is None:
            raise AssertionError("a run with such hooks has what carries faults out")
        done = self.inject(sentence)
        steps = "; ".join(step for _, step in done.steps)
        area = {
            "title": "Fault injection",
            "chart_plugin": "TextArea",
            "description": sentence,
            "data": [steps or "(nothing was done)"],
        }
        failed = (done.failure, done.failure) if done.failure else None
        return failed, json.dumps({"additive": [], "complete": [area]})

    def _run_command(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[tuple[str, str] | None, str]:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            why = f"{masked_command(command)[0]} cannot be started: {reason}"
            return (why, why), _NO_CHARTS
        with process:
            out, err, is_late = self._communicate(process)
        code = process.returncode
        output = _charts(out.text) or _text(command, code, self._redacted(out), self._redacted(err))
        details = self._redacted(err) or f"stdout: {self._redacted(out)}"
        if is_late:
            return (f"Subprocess was ended after {self.timeout_s:g} s", details), json.dumps(output)
        failed = (f"Subprocess returned {code}", details) if code else None
        return failed, json.dumps(output)

    def _communicate(
        self, process: subprocess.Popen[bytes]
    ) -> tuple["_CapturedOutput", "_CapturedOutput", bool]:
        """Read a command's output until its end; terminate it after the time limit."""
        if process.stdout is None or process.stderr is None:
            raise AssertionError("both are pipes")
        out, err = _CapturedOutput(process.stdout), _CapturedOutput(process.stderr)
        with selectors.DefaultSelector() as selector:
            for one in (out, err):
                os.set_blocking(one.pipe.fileno(), False)
                selector.register(one.pipe, selectors.EVENT_READ, one)
            deadline_s = time.monotonic() + self.timeout_s
            is_late = not _over(selector, process, deadline_s, self._given_up)
            if is_late:
                # Wait for the command only after both signals: until then the id of its group
                # cannot be reused.
                _signal(process, signal.SIGTERM)
                _over(selector, process, time.monotonic() + GRACE_S)
                _signal(process, signal.SIGKILL)
            process.wait()
        return out, err, is_late

    def _redacted(self, output: "_CapturedOutput") -> str:
        text: str = masked(self.redaction.text(output.text))
        if len(text) <= MOST_TEXT and not output.is_cut:
            return text
        return f"{text[:MOST_TEXT]}\n(cut: {output.bytes:,} bytes in all)"


@dataclass(slots=True)
class _CapturedOutput:
    """The beginning of a command's output to a pipe."""

    pipe: IO[bytes]
    bytes: int = 0
    _kept: bytearray = field(default_factory=bytearray)

    def read(self) -> bool:
        """Read the available output; return False at the end."""
        try:
            chunk = os.read(self.pipe.fileno(), 65_536)
        except BlockingIOError:
            return True
        self.bytes += len(chunk)
        self._kept += chunk[: 4 * (MOST_TEXT + _SLACK) - len(self._kept)]
        return bool(chunk)

    @property
    def text(self) -> str:
        return self._kept.decode(errors="replace")[: MOST_TEXT + _SLACK]

    @property
    def is_cut(self) -> bool:
        return self.bytes > len(self._kept)


def _over(
    selector: selectors.BaseSelector,
    process: subprocess.Popen[bytes],
    deadline_s: float,
    given_up: Flag | None = None,
) -> bool:
    """Read until both pipes and the process have ended; False: time-out, or run abandoned."""
    while (has_pipes := bool(selector.get_map())) or not _has_ended(process):
        if time.monotonic() >= deadline_s or (given_up is not None and given_up.is_set()):
            return False
        if not has_pipes:
            time.sleep(_END_S)
            continue
        for key, _ in selector.select(_POLL_S):
            if not key.data.read():
                selector.unregister(key.fileobj)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended, without waiting for it: its id stays its own."""
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, how) is not None


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _not_started(moment: Moment, clock: Clock, why: str) -> HookRun:
    number, unit, value = moment
    now_s = clock.unix_s()
    return HookRun(number, unit, value, now_s, now_s, _NO_CHARTS, (why, why))


def _charts(out: str) -> Output | None:
    """Return the charts in a command's output; None: it is something else."""
    try:
        found = charts(masked(json.loads(out)))
    except (ValueError, RecursionError):
        return None
    # A mapping without a chart is some other JSON, such as a service's answer.
    return found if found and any(found.values()) else None


def _text(command: Sequence[str], code: int, out: str, err: str) -> Output:
    area = {
        "title": "System call",
        "chart_plugin": "TextArea",
        "description": f"Args: {shlex.join(masked_command(command))}",
        "data": [
            f"RetCode: {code}",
            f"StdOut: {out or '(empty)'}",
            f"StdErr: {err or '(empty)'}",
        ],
    }
    return {"additive": [], "complete": [area]}
