"""Owner of a deployment that tests share: FOLDER NAME SETTING...; see shared_labs.py."""

import contextlib
import os
import sys
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.system import locks

SESSION, UP = "session.lock", "up\n"  # as in shared_labs.py, which needs pytest


def main() -> None:
    folder, name = Path(sys.argv[1]), sys.argv[2]
    chosen = settings.read([settings.split(word) for word in sys.argv[3:]])
    with locks.held(folder / f"{name}.owned"):
        try:
            deployment.up(name, chosen, lambda line: print(line, file=sys.stderr), owned=True)
        except EnvironmentUnusable as problem:
            answer(str(problem))
            return
        answer(UP)
        with locks.held(folder / SESSION):
            pass
        deployment.down(name, purge=True)


def answer(text: str) -> None:
    """Write, and close stdout: whoever started this reads to the end, or has been killed."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), text.encode())
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    main()
