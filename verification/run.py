"""Runs parts one after the other, each with a time limit and a log of its own."""

import datetime
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from loadstone.system.interrupts import Interrupts
from verification import claim, parts
from verification.claim import Claim, Machine, Result, Results
from verification.engine.machine import processor
from verification.part import Part
from verification.timing import expected_s, shown

LOGS = parts.ROOT / "target/verify"
GRACE_S = 30.0  # from SIGTERM to SIGKILL
# What a run of parts writes itself does not make its commit another one.
WRITTEN = ("verification/results.json", "docs/verification.md")


class Outcome(StrEnum):
    """How a part ended."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a part ended, and what its log states about claims."""

    part: Part
    outcome: Outcome
    seconds: float
    why: str  # it failed or was left out
    figures: Mapping[str, str]  # by claim
    load_before: float = 0.0


def carry_out(
    part: Part, rows: Sequence[Claim], logs: Path = LOGS, *, is_quick: bool = False
) -> Ended:
    """Run a part; a failure, a time-out or a figure that is not stated is its outcome."""
    if lacking := part.missing():
        return Ended(part, Outcome.LEFT_OUT, 0.0, f"needs {lacking}", {})
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{part.name}.log"
    load_before, began_s = os.getloadavg()[0], time.monotonic()
    why = _run(part.command(is_quick=is_quick), log, part.limit_s)
    figures = {row.id: row.found_in(log.read_text(errors="replace")) for row in rows}
    unstated = [name for name, figure in figures.items() if not figure]
    if not why and unstated and not is_quick:
        why = f"no figure of {', '.join(unstated)} in its output"
    outcome = Outcome.FAILED if why else Outcome.PASSED
    return Ended(part, outcome, time.monotonic() - began_s, why, figures, load_before)


def _run(command: Sequence[str], log: Path, limit_s: float) -> str:
    """Run a command in a session of its own; say why it failed, if it did."""
    variables = os.environ | {"PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        try:
            with Interrupts() as before:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=parts.ROOT,
                    env=variables,
                    start_new_session=True,
                )
        except OSError as problem:
            return str(problem)
        try:
            if before.count:
                raise KeyboardInterrupt
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"took longer than {shown(limit_s)}"
        finally:
            with Interrupts():  # a second Ctrl-C must not leave it behind
                _end(process)
    return f"exit code {code}" if code else ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of the command and of what it started in its session."""
    for number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            process.wait()
            return
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


def commit() -> str:
    """Return the commit that is checked out, marked if files differ from it."""
    words = ("git", "rev-parse", "--short", "HEAD")
    head = subprocess.run(words, cwd=parts.ROOT, capture_output=True, text=True, check=False)
    excluded = (f":!{name}" for name in WRITTEN)
    changed = subprocess.run(
        ("git", "status", "--porcelain", "--", ".", *excluded),
        cwd=parts.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return head.stdout.strip() + ("-dirty" if changed.stdout.strip() else "")


def recorded(kept: Results, ended: Ended, at_commit: str) -> Results:
    """Return the results with what a part found."""
    if ended.outcome is Outcome.LEFT_OUT:
        return kept
    machine = Machine(len(os.sched_getaffinity(0)), processor(), round(ended.load_before, 2))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    passed = ended.outcome is Outcome.PASSED
    found = {
        name: Result(figure, passed, today, at_commit, machine)
        for name, figure in ended.figures.items()
    }
    seconds = {ended.part.name: round(ended.seconds)} if passed else {}
    return Results({**kept.claims, **found}, {**kept.seconds, **seconds})


def run(selected: Sequence[Part], *, is_quick: bool = False) -> list[Ended]:
    """Run the parts; record what each found as soon as it ends, unless it is a quick run."""
    rows = claim.claims()
    at_commit, ended = commit(), []
    for number, part in enumerate(selected, start=1):
        own = [row for row in rows.values() if row.part == part.name]
        about = shown(expected_s(part, claim.results().seconds))
        print(f"[{number}/{len(selected)}] {part.name} (about {about})", flush=True)
        try:
            one = carry_out(part, own, is_quick=is_quick)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            ended.append(Ended(part, Outcome.FAILED, 0.0, "interrupted", {}))
            break
        ended.append(one)
        print(f"    {one.outcome}, {shown(one.seconds)} {one.why}".rstrip(), flush=True)
        if not is_quick:
            claim.keep(recorded(claim.results(), one, at_commit))
    return ended


def summary(ended: Sequence[Ended]) -> str:
    """Return a table of how the parts ended."""
    width = max(len(one.part.name) for one in ended)
    lines = [
        f"{one.part.name:{width}}  {one.outcome:8}  {shown(one.seconds):>7}  {one.why}".rstrip()
        for one in ended
    ]
    failed = sum(one.outcome is Outcome.FAILED for one in ended)
    lines.append(f"{len(ended)} parts, {failed} failed; logs: {LOGS.relative_to(parts.ROOT)}/")
    return "\n".join(lines)
