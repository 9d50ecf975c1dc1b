"""One attempt: a command, the way in which it is ended, and the moment."""

import secrets
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from verification.faults.kills.commands import KEEPS_NO_RUN, KINDS, Command, Stage
from verification.faults.kills.ending import Ending, Running
from verification.faults.kills.left import PATIENCE_S, Traces, environment_of, until


@dataclass(frozen=True, slots=True)
class Target:
    """The service that commands measure, and the home folder that they use."""

    variables: dict[str, str]  # OS_*
    home: Path
    lab: str | None = None  # the service's name, if it is a lab


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which command is ended, how and when."""

    command: Command
    stage: Stage
    ending: Ending
    moment: float  # from 0, the stage's beginning, to 1, about its end

    def __str__(self) -> str:
        stage = f"{self.stage.name} at {self.moment:.0%}" if self.stage.lasts_s else self.stage.name
        return f"{self.command.name:15}  {self.ending:30}  {stage:22}"


def attempts(times: int, users: int, seed: int, kinds: Sequence[str]) -> Iterator[Attempt]:
    """Draw attempts: kinds of commands in turn, each ending in turn, at a random moment."""
    draw = Random(seed)
    endings: list[Ending] = []
    stages: dict[str, int] = {}
    for index in range(times):
        if not endings:
            endings = draw.sample(list(Ending), len(Ending))
        name = kinds[index % len(kinds)]
        command = KINDS[name](draw, users)
        stages[name] = stages.get(name, draw.randrange(len(command.stages))) + 1
        stage = command.stages[stages[name] % len(command.stages)]
        yield Attempt(command, stage, endings.pop(), draw.random())


def trouble(attempt: Attempt, target: Target, folder: Path) -> list[str]:
    """Carry an attempt out in an empty folder; return what was not as it has to be."""
    _hear_signals()
    environment = environment_of(target.home, target.variables, secrets.token_hex(8))
    environment["LOADSTONE_STORE"] = str(folder / "store")
    for name, text in attempt.command.files:
        (folder / name).write_text(text)
    words = [sys.executable, "-m", "loadstone", *attempt.command.words]
    if attempt.command.is_on_lab:
        words += ["--lab", str(target.lab)]
    running = Running.begun(words, attempt.ending, folder, environment)
    try:
        _wait_for(attempt, running, folder)
        had_ended = running.has_ended
        running.end()
        code = running.process.wait(PATIENCE_S)
    finally:
        running.process.kill()
        running.process.wait()
    found = list(_wrong_end(attempt, code, running.printed(), folder, had_ended=had_ended))
    return [*found, *Traces(folder, environment, target.variables, target.lab).found()]


def _hear_signals() -> None:
    """Undo what a shell's job in the background or nohup has set: commands inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _wait_for(attempt: Attempt, running: Running, folder: Path) -> None:
    """Return at the attempt's moment, or when the command has ended."""
    stage = attempt.stage

    def is_there() -> bool:
        return running.has_ended or stage.begins(folder, running.printed())

    if not until(is_there, PATIENCE_S):
        raise AssertionError(running.printed())
    end_s = time.monotonic() + stage.lasts_s * attempt.moment
    until(lambda: running.has_ended or time.monotonic() > end_s, PATIENCE_S)


def _wrong_end(
    attempt: Attempt, code: int, printed: str, folder: Path, *, had_ended: bool
) -> Iterator[str]:
    """Yield what is wrong with exit code and messages."""
    if "Traceback" in printed:
        yield f"a traceback: {printed}"
    wanted = attempt.ending.code
    if had_ended or wanted is None:
        if code not in attempt.command.codes and not _is_by_default(attempt, code, folder):
            yield f"ended with {code}: {printed}"
        return
    # It may have ended just before the signal came.
    if code not in (wanted, *attempt.command.codes[:1]) and not _is_by_default(
        attempt, code, folder
    ):
        yield f"ended with {code}, not {wanted}: {printed}"


def _is_by_default(attempt: Attempt, code: int, folder: Path) -> bool:
    """While Python still loads the command, a signal ends it as any Python program."""
    has_begun = (folder / "store").exists() or attempt.command.name in KEEPS_NO_RUN
    return not has_begun and code < 0
