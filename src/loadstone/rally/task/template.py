"""Renders Jinja2 task files in a child process with limits."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.errors import EnvironmentUnusable
from loadstone.rally.task.limits import CPU_S, MEMORY_BYTES
from loadstone.rally.task.problem import Problem, TaskInvalid
from loadstone.rally.task.tree import Origins

# The child limits its own CPU time; this is for a machine on which it gets no CPU.
WALL_S = 120.0


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered template, and the origin of each line."""

    text: str
    origins: Origins | None  # None: line n of the text is line n of the file


def render(source: str, name: str, folder: Path, arguments: Mapping[str, Any]) -> Rendered:
    """Render a task file as Rally does; includes are read from `folder`."""
    if not any(mark in source for mark in ("{{", "{%", "{#")):
        return Rendered(source, None)
    given = packed(arguments)
    request = {"source": source, "name": name, "folder": str(folder), "arguments": given}
    reply = _call_child(json.dumps(request, default=str), name)
    if "message" in reply:
        raise TaskInvalid([Problem(reply["file"], reply["line"], reply["message"])])
    return Rendered(reply["text"], [(file, line) for file, line in reply["origins"]])


def packed(value: Any) -> Any:
    """Return a value whose mappings are lists of pairs, because JSON has text keys only."""
    if isinstance(value, Mapping):
        return {"pairs": [[packed(key), packed(one)] for key, one in value.items()]}
    return [packed(one) for one in value] if isinstance(value, list) else value


def _call_child(request: str, name: str) -> dict[str, Any]:
    # -P: do not search the user's working directory for modules.
    command = [sys.executable, "-P", "-m", "loadstone.rally.task.rendering"]
    try:
        child = subprocess.run(
            command, input=request, capture_output=True, text=True, check=False, timeout=WALL_S
        )
    except subprocess.TimeoutExpired:
        message = f"the template did not end within {WALL_S:.0f} s"
        raise TaskInvalid([Problem(name, None, message)]) from None
    if child.returncode == 0:
        reply: dict[str, Any] = json.loads(child.stdout)
        return reply
    if child.returncode < 0:
        message = (
            f"the template was stopped (signal {-child.returncode}): it may use {CPU_S} s of CPU "
            f"and {MEMORY_BYTES // 2**20} MB; does it loop?"
        )
        raise TaskInvalid([Problem(name, None, message)])
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    raise EnvironmentUnusable(f"the template process could not run: {last}")
