"""Starts the parts of a deployment in order, independent of what the parts are."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import logs, processes, programs, state
from loadstone.lab.parts.part import Part
from loadstone.lab.processes import Process
from loadstone.lab.state import DeploymentState, Record
from loadstone.system.say import Say

HEALTH_S = 120.0  # a worker loads in 3 s of CPU; the rest allows for a busy machine
POLL_S = 0.1


def assemble(
    folder: Path, begun: DeploymentState, parts: Sequence[Part], say: Say
) -> DeploymentState:
    """Prepare and start each part once the previous ones are healthy; record each on disk.

    Consecutive parts that start beside others are awaited together.
    """
    programs.check(program for part in parts for program in part.programs)
    for kind in ("logs", "run"):
        (folder / kind).mkdir(exist_ok=True)
    unawaited: list[tuple[Part, Process]] = []
    for part in parts:
        if not part.starts_beside_others:
            _await_all(unawaited, say)
        part.prepare(say)
        process = part.start()
        paths = tuple(str(path) for path in part.logs())
        statistics = part.statistics() if part.is_reported else ""
        record = Record(part.name, process, int(part.stop_signal), paths, statistics)
        begun = begun.with_record(record)
        state.write(folder, begun)
        if process is not None:
            unawaited.append((part, process))
        if not part.starts_beside_others:
            _await_all(unawaited, say)
        if part.is_reported:
            begun = replace(begun, facts=(*begun.facts, *part.facts()))
    _await_all(unawaited, say)
    return begun


def _await_all(started: list[tuple[Part, Process]], say: Say) -> None:
    """Wait for each of these parts, and clear the list."""
    while started:
        part, process = started.pop(0)
        say(f"waiting for {part.name}")
        await_health(part, process)


def await_health(part: Part, process: Process) -> None:
    """Wait until the part is healthy; otherwise raise an error with the relevant log lines."""
    deadline = time.monotonic() + HEALTH_S
    while True:
        # Check the process first: another program may answer on the port of a dead server.
        if not processes.alive(process):
            raise EnvironmentUnusable(
                f"{part.name} ended while starting\n{logs.explain(part.logs())}"
            )
        if part.healthy():
            return
        if time.monotonic() > deadline:
            raise EnvironmentUnusable(
                f"{part.name} does not serve after {HEALTH_S:.0f} s\n{logs.explain(part.logs())}"
            )
        time.sleep(POLL_S)


def failure(known: DeploymentState) -> str | None:
    """Describe the first part that died, with the log lines that explain it."""
    for record in known.records:
        if record.process is not None and not processes.alive(record.process):
            lines = logs.explain(tuple(Path(path) for path in record.logs))
            return f"{record.part} of deployment {known.name} died\n{lines}"
    return None
