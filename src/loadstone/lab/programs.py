"""Programs of the machine that parts need; Loadstone names what is missing and installs nothing."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable

SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"  # not on every user's PATH
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and the Debian package that holds it."""

    name: str  # or the path of a file that must be there
    package: str
    folders: tuple[str, ...] = ()  # beside the PATH; may hold a pattern

    def find(self) -> str | None:
        """Give its path, or None when it is not installed."""
        if self.name.startswith("/"):
            return self.name if Path(self.name).exists() else None
        places = ":".join([os.environ.get("PATH", os.defpath), SYSTEM_FOLDERS])
        found = shutil.which(self.name, path=places)
        if found is not None or not self.folders:
            return found
        # The highest of several versions, as /usr/lib/postgresql/15/bin.
        beside = sorted(p for folder in self.folders for p in Path("/").glob(folder.lstrip("/")))
        return shutil.which(self.name, path=":".join(str(p) for p in reversed(beside)))

    def version(self, flag: str) -> str:
        """Give the version that it tells of itself."""
        told = subprocess.run(
            (self.path(), flag), capture_output=True, text=True, check=False, cwd="/"
        )
        found = re.search(r"\d+(\.\d+)+", told.stdout + told.stderr)
        return found[0] if found else "?"

    def path(self) -> str:
        """Give its path."""
        return self.find() or missing((self,))


def check(programs: Iterable[Program]) -> None:
    """Raise with one command that installs all that is missing."""
    lacking = tuple(program for program in programs if program.find() is None)
    if lacking:
        missing(lacking)


def missing(programs: tuple[Program, ...]) -> str:
    """Raise: they are not installed."""
    names = ", ".join(dict.fromkeys(program.name for program in programs))
    packages = " ".join(dict.fromkeys(program.package for program in programs))
    raise EnvironmentUnusable(f"not installed: {names}; install: apt-get install {packages}")


def unprivileged(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Give the command in a form that also root can give to a program that refuses root.

    As root it runs in a user namespace where root's number is nobody's: the program sees no root,
    and its files stay ours, wherever they are. (A user of its own could not reach below /root.)
    """
    if os.geteuid() != 0:
        return arguments
    nobody = (f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    return (Program("unshare", "util-linux").path(), "--user", *nobody, "--", *arguments)
