"""The commands that are ended early, and the stages of each in which that happens."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

LAB = "killed"  # the lab that `lab up` starts
BROKEN = "broken"  # a file that is there while the fault of a --faults file is in force
LOAD_S = 2.0
START_S = 1.5  # Python loads the command and connects
LAB_UP_S = 9.0
# Sent by the engine; things made by iterations; Python functions in worker processes.
SCENARIOS = ("Authenticate.keystone", "KeystoneBasic.create_user", "Dummy.dummy")
FLEET_SCENARIOS = SCENARIOS[:2]  # functions do not run on a fleet
TASK = """
{scenario}:
  - runner: {{type: constant_for_duration, duration: {load_s}, concurrency: {concurrency}}}
    context: {{users: {{tenants: 2, users_per_tenant: {per_tenant}}}}}
"""
FAULTS = f"""
keystone:
  hosts: [here]
  freeze: {{do: touch {BROKEN}, undo: rm -f {BROKEN}}}
"""
STUDY = """
title: Two cells
settings: {workers: 1}
factors: {hash-rounds: [4, 5]}
measurement:
  kind: steps
  users: 2
  steps:
    - {name: validate, scenario: validate, concurrency: 2, iterations: 200}
"""
_UNDER_LOAD = re.compile(r"\| (?:due|started) \d")

# Whether the stage's share (0 to 1) of a command is reached: of its folder and its stderr.
Reached = Callable[[Path, str], bool]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a command; it begins at an event and lasts about `lasts_s` seconds."""

    name: str
    lasts_s: float
    begins: Reached = lambda _folder, _printed: True


@dataclass(frozen=True, slots=True)
class Command:
    """A command in a folder of its own, its stages and its exit codes if nobody ends it."""

    name: str
    words: tuple[str, ...]
    stages: tuple[Stage, ...]
    codes: tuple[int, ...]
    files: tuple[tuple[str, str], ...] = ()
    is_on_lab: bool = False  # its target is the lab by name, not by OS_* variables


def _under_load(_folder: Path, printed: str) -> bool:
    return _UNDER_LOAD.search(printed) is not None


def _journal_has(event: str, at_least: int) -> Reached:
    """Return a condition on the journal of the run's users."""
    words = f'"event": "{event}", "kind": "user"'

    def has(folder: Path, _printed: str) -> bool:
        files = (folder / "store").glob("runs/*/created.jsonl")
        return sum(file.read_text().count(words) for file in files) >= at_least

    return has


def _users(draw: Random, users: int) -> tuple[Stage, Stage]:
    """Return the stages in which users are created and removed, at a random user."""
    number = 1 + int(draw.random() * (users - 1))
    return (
        Stage(f"creating user {number}", 0.0, _journal_has("created", number)),
        Stage(f"removing user {number}", 0.0, _journal_has("removed", number)),
    )


def _task_run(draw: Random, users: int, scenarios: tuple[str, ...], load_s: float) -> str:
    scenario = draw.choice(scenarios)
    return TASK.format(
        scenario=scenario,
        load_s=load_s,
        # SQLite allows one writer.
        concurrency=1 if scenario == "KeystoneBasic.create_user" else 4,
        per_tenant=max(1, users // 2),
    )


def run(draw: Random, users: int) -> Command:
    """Return a task run, its load from this machine."""
    task = _task_run(draw, users, SCENARIOS, LOAD_S)
    creating, removing = _users(draw, users)
    stages = (Stage("start", START_S), creating, Stage("load", LOAD_S, _under_load), removing)
    return Command("run", ("run", "task.yaml"), stages, (0,), (("task.yaml", task),))


def fleet(draw: Random, users: int) -> Command:
    """Return a task run whose load comes from processes of a fleet."""
    task = _task_run(draw, users, FLEET_SCENARIOS, LOAD_S)
    creating, removing = _users(draw, users)
    stages = (Stage("start", 4.0), creating, Stage("load", LOAD_S, _under_load), removing)
    words = ("run", "task.yaml", "--fleet", "local:2")
    return Command("run --fleet", words, stages, (0,), (("task.yaml", task),))


def capacity(draw: Random, users: int) -> Command:
    """Return a short search."""
    creating, removing = _users(draw, users)
    stages = (Stage("start", START_S), creating, Stage("load", 12.0, _under_load), removing)
    words = ("capacity", "--budget", "20s", "--users", str(users))
    # 4: twenty seconds on a machine with other work may decide nothing.
    return Command("capacity", words, stages, (0, 1, 4))


def _fault_words(sentence: str) -> tuple[str, ...]:
    return (
        *("fault", "--do", sentence, "--rate", "12", "--users", "0", "--repeats", "1"),
        *("--baseline", "5s", "--observe", "4s", "--timeout", "3s"),
    )


def fault_file(_draw: Random, _users: int) -> Command:
    """Return a fault by the commands of a file."""
    words = _fault_words("freeze keystone service for 2 seconds")
    seen: list[bool] = []

    def is_over(folder: Path, _printed: str) -> bool:
        is_there = (folder / BROKEN).exists()
        if is_there:
            seen.append(True)
        return bool(seen) and not is_there

    stages = (
        Stage("start", START_S),
        Stage("before the fault", 5.0, _under_load),
        Stage("fault", 2.0, lambda folder, _: (folder / BROKEN).exists()),
        Stage("after the fault", 3.0, is_over),
    )
    more = ("--faults", "faults.yaml", "--yes-break-this-target")
    name = "fault --faults"
    return Command(name, (*words, *more), stages, (0, 1, 4), (("faults.yaml", FAULTS),))


def fault_lab(draw: Random, _users: int) -> Command:
    """Return a fault of a lab."""
    sentence = draw.choice(
        ("freeze keystone service for 2 seconds", "kill keystone service", "steal cpu")
    )
    stages = (
        Stage("start", START_S),
        Stage("before the fault", 5.0, _under_load),
        Stage("fault", 3.0, lambda _, printed: f" s  {sentence}" in printed),
    )
    name = "fault --lab"
    return Command(name, _fault_words(sentence), stages, (0, 1, 4), is_on_lab=True)


def study(_draw: Random, _users: int) -> Command:
    """Return a study of two cells, each with a lab of its own."""
    stages = (
        Stage("start", START_S),
        Stage("first lab", 8.0, lambda _, printed: "[1/2]" in printed),
        Stage("load", 4.0, _under_load),
        Stage("second lab", 8.0, lambda _, printed: "[2/2]" in printed),
    )
    return Command("study run", ("study", "run", "study.yaml"), stages, (0, 4), (
        ("study.yaml", STUDY),
    ))  # fmt: skip


def lab_up(_draw: Random, _users: int) -> Command:
    """Return the start of a lab."""
    words = ("lab", "up", LAB, "--workers", "1", "--with", "hash-rounds=4")
    return Command("lab up", words, (Stage("start", LAB_UP_S),), (0,))


KINDS: dict[str, Callable[[Random, int], Command]] = {
    "run": run,
    "capacity": capacity,
    "fault-file": fault_file,
    "fault-lab": fault_lab,
    "fleet": fleet,
    "study": study,
    "lab-up": lab_up,
}
WITHOUT_LAB = ("run", "capacity", "fault-file", "fleet")
KEEPS_NO_RUN = ("lab up",)


def ended_trials(folder: Path) -> dict[str, int]:
    """Return how many trials each run in a store's folder has written to files."""
    found: dict[str, int] = {}
    for path in (folder / "store").glob("runs/*/results/*-*.json"):
        row = json.loads(path.read_text())
        if row.get("table") == "trials":
            run_id = path.parent.parent.name
            found[run_id] = found.get(run_id, 0) + 1
    return found
