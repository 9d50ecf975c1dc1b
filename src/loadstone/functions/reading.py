"""A task file, read and checked by a process that then ends: what that takes is free again before
the load. The forms of all that a file may name are 12 MB.
"""

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import EnvironmentUnusable, LoadstoneError
from loadstone.task.limits import MAX_BYTES

if TYPE_CHECKING:
    from loadstone.task.checked import Checked


@dataclass(frozen=True, slots=True)
class Question:
    """Which file, what fills its template, and the files of the user's own scenarios."""

    file: str  # "-": stdin
    raw_arguments: str | None
    arguments_file: str | None
    plugins: tuple[str, ...]


def read_apart(question: Question) -> "Checked":
    """Do as `task.read.read`, in a child process; raises what it raises."""
    said = pickle.dumps(question)
    if question.file == "-":
        said += sys.stdin.buffer.read(MAX_BYTES + 1)
    # -P: the folder that the user stands in must not be searched for modules.
    command = [sys.executable, "-P", "-m", "loadstone.functions.reading"]
    child = subprocess.run(command, input=said, capture_output=True, check=False)
    if child.returncode != 0:
        last = (child.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise EnvironmentUnusable(f"the process that reads task files could not run: {last}")
    # From our own child, which is the same program.
    answer: Checked | LoadstoneError = pickle.loads(child.stdout)  # noqa: S301
    if isinstance(answer, LoadstoneError):
        raise answer
    return answer


def _answer(question: Question) -> "Checked | LoadstoneError":
    from loadstone.functions.plugin import load_plugins
    from loadstone.task.read import read

    try:
        load_plugins(question.plugins)
        return read(question.file, question.raw_arguments, question.arguments_file)
    except LoadstoneError as refused:
        return refused


def main() -> None:
    """Answer the question on stdin; behind it comes the task file, where that is on stdin."""
    question = pickle.load(sys.stdin.buffer)  # noqa: S301
    # A plugin may print while it is imported; the answer stands alone.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        pickle.dump(_answer(question), out)


if __name__ == "__main__":
    main()
