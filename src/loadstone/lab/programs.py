"""Programs that parts need; missing ones are reported, never installed."""

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable

SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"  # not on the PATH of every user
NOBODY = 65534
UNKNOWN = "?"  # version


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and the Debian package that holds it."""

    name: str  # or the path of a required file
    package: str  # empty: Debian has none
    folders: tuple[str, ...] = ()  # searched besides the PATH; may be glob patterns
    built_by: str = ""  # what makes it, if Debian has none

    def find(self) -> str | None:
        """Return its path, or None if it is not installed."""
        if self.name.startswith("/"):
            return self.name if Path(self.name).exists() else None
        places = ":".join([os.environ.get("PATH", os.defpath), SYSTEM_FOLDERS])
        found = shutil.which(self.name, path=places)
        if found is not None or not self.folders:
            return found
        # The highest of several versions, such as /usr/lib/postgresql/15/bin.
        there = (p for folder in self.folders for p in Path("/").glob(folder.lstrip("/")))
        beside = sorted(there, key=_with_numbers)
        return shutil.which(self.name, path=":".join(str(p) for p in reversed(beside)))

    def version(self, flag: str) -> str:
        """Return the version that the program prints."""
        completed = subprocess.run(
            (self.path(), flag), capture_output=True, text=True, check=False, cwd="/"
        )
        found = re.search(r"\d+(\.\d+)+", completed.stdout + completed.stderr)
        return found[0] if found else UNKNOWN

    def path(self) -> str:
        """Return its path."""
        return self.find() or missing((self,))


def _with_numbers(path: Path) -> list[str | int]:
    """Return the words and numbers of a path by turns, so that 15 comes after 9.6."""
    return [int(one) if one.isdecimal() else one for one in re.split(r"([0-9]+)", str(path))]


def check(programs: Iterable[Program]) -> None:
    """Raise if programs are missing, with one command that installs all of them."""
    lacking = tuple(program for program in programs if program.find() is None)
    if lacking:
        missing(lacking)


def missing(programs: tuple[Program, ...]) -> str:
    """Raise: these programs are not installed."""
    names = ", ".join(dict.fromkeys(program.name for program in programs))
    packages = " ".join(dict.fromkeys(one.package for one in programs if one.package))
    ways = [f"install: apt-get install {packages}"] if packages else []
    ways += dict.fromkeys(f"build: {one.built_by}" for one in programs if one.built_by)
    raise EnvironmentUnusable(f"not installed: {names}; {'; '.join(ways)}")


def own_user() -> str:
    """Return the name of the user whose files a server may read: the effective one.

    LOGNAME and USER, which `getpass.getuser` prefers, still name the earlier one after `su`.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # as in a container with a number for a user
        return str(os.geteuid())


def unprivileged(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command, wrapped in `unshare --user` if run as root.

    PostgreSQL and mod_wsgi refuse to run as root. In the user namespace the program sees itself as
    nobody, and its files still belong to us. (A separate user could not read below /root.)
    """
    if os.geteuid() != 0:
        return arguments
    nobody = (f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    return (Program("unshare", "util-linux").path(), "--user", *nobody, "--", *arguments)
