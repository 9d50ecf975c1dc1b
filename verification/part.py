"""A part of `make verify`: one command that measures something."""

import glob
import os
import shlex
import shutil
import sys
from dataclasses import dataclass

# A part may take this many times as long as it usually does, and at least this long.
PATIENCE = 3.0
SHORTEST_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Part:
    """What it measures, how, and for about how long."""

    name: str
    topic: str
    shows: str
    about_s: float
    words: str  # the command; {python} is this Python
    quick: str = ""  # the same way with next to no load; empty: the command itself
    needs: tuple[str, ...] = ()  # programs, `root`, or an environment variable as NAME=VALUE
    is_first: bool = False  # a newcomer runs it first: its truth is known by other means

    @property
    def limit_s(self) -> float:
        """Seconds after which the part is ended."""
        return max(PATIENCE * self.about_s, SHORTEST_LIMIT_S)

    def command(self, *, is_quick: bool = False) -> list[str]:
        """Return the words to run."""
        words = self.quick if is_quick and self.quick else self.words
        expanded = os.path.expandvars(words.format(python=shlex.quote(sys.executable)))
        return shlex.split(expanded)

    def shown(self) -> str:
        """Return the command as a user types it."""
        return self.words.format(python="python")

    def missing(self) -> str:
        """Say what this machine lacks for it; empty if nothing."""
        return ", ".join(need for need in self.needs if not _is_here(need))


def _is_here(need: str) -> bool:
    if need == "root":
        return os.geteuid() == 0
    if "=" in need:
        return bool(os.environ.get(need.partition("=")[0]))
    # Debian keeps PostgreSQL's programs off the PATH.
    beside = ("/usr/sbin", *glob.glob("/usr/lib/postgresql/*/bin"))
    return shutil.which(need, path=":".join((os.environ.get("PATH", ""), *beside))) is not None
