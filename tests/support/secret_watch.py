"""Runs a command and looks for secrets: in files, and in what its children show in /proc."""

import contextlib
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Watched:
    """A command that has ended, and what its descendants showed in /proc."""

    returncode: int
    printed: str
    command_lines: frozenset[bytes] = field(repr=False)
    environments: frozenset[bytes] = field(repr=False)


def files_with(secret, *places):
    return [
        path
        for place in places
        for path in place.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]


def _descendants(leader):
    """Yield the process folders of a process's descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            stat = (entry / "stat").read_text()
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    family, grown = {leader}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        grown, family = bool(more), family | more
    for pid in family - {leader}:
        yield Path(f"/proc/{pid}")


def _look(leader, own, lines, environments):
    for folder in _descendants(leader):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if line != own:  # which a fork still has
                lines.add(line)
                environments.add((folder / "environ").read_bytes())


def watched(words, stdin=""):
    """Run a command; return what it printed, and what the processes that it started showed."""
    lines, environments, over = set(), set(), threading.Event()
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        own = Path(f"/proc/{process.pid}/cmdline").read_bytes()

        def look():
            while not over.wait(0.01):
                _look(process.pid, own, lines, environments)

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            printed, _ = process.communicate(stdin, timeout=500)
        finally:
            over.set()
            watcher.join()
    return Watched(process.returncode, printed, frozenset(lines), frozenset(environments))
