"""Jinja2 in task files: rendered in a child process that cannot run away."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.errors import EnvironmentUnusable
from loadstone.task.limits import CPU_S, MAX_BYTES, MEMORY_BYTES
from loadstone.task.problem import Problem, TaskInvalid
from loadstone.task.tree import Origins

# The child stops itself by CPU time; this is for a machine that gives it none.
WALL_S = 120.0


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a template gives, and where each of its lines came from."""

    text: str
    origins: Origins | None  # None: line n of the text is line n of the file


def render(source: str, name: str, folder: Path, arguments: Mapping[str, Any]) -> Rendered:
    """Render a task file as Rally does; `folder` is what it may include from."""
    if len(source.encode()) > MAX_BYTES:
        raise TaskInvalid([Problem(name, None, too_big("the file"))])
    if not any(mark in source for mark in ("{{", "{%", "{#")):
        return Rendered(source, None)
    asked = {"source": source, "name": name, "folder": str(folder), "arguments": arguments}
    answer = _ask(json.dumps(asked, default=str), name)
    if "words" in answer:
        raise TaskInvalid([Problem(answer["file"], answer["line"], answer["words"])])
    return Rendered(answer["text"], [(file, line) for file, line in answer["origins"]])


def too_big(what: str) -> str:
    """Say that a text is larger than a task may be."""
    return f"{what} is larger than {MAX_BYTES // 1_000_000} MB, which no task needs"


def _ask(question: str, name: str) -> dict[str, Any]:
    # -P: the folder that the user stands in must not be searched for modules.
    command = [sys.executable, "-P", "-m", "loadstone.task.rendering"]
    try:
        child = subprocess.run(
            command, input=question, capture_output=True, text=True, check=False, timeout=WALL_S
        )
    except subprocess.TimeoutExpired:
        words = f"the template did not end within {WALL_S:.0f} s"
        raise TaskInvalid([Problem(name, None, words)]) from None
    if child.returncode == 0:
        answer: dict[str, Any] = json.loads(child.stdout)
        return answer
    if child.returncode < 0:
        words = (
            f"the template was stopped (signal {-child.returncode}): it may use {CPU_S} s of CPU "
            f"and {MEMORY_BYTES // 2**20} MB; does it loop?"
        )
        raise TaskInvalid([Problem(name, None, words)])
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    raise EnvironmentUnusable(f"the template process could not run: {last}")
