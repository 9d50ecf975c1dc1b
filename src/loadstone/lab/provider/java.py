"""Java runtimes of this machine. Which one runs a service changes what a password check costs."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.programs import Program

LEAST = 17  # of Keycloak 26 (www.keycloak.org/server/configuration)
PACKAGE = "default-jre-headless"  # Debian's, of the release that it supports
FOLDERS = "/usr/lib/jvm"


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java runtime."""

    home: Path
    version: str  # "25.0.3"

    @property
    def major(self) -> int:
        """The number that releases are called by; that of Java 8 is written 1.8."""
        first, _, rest = self.version.partition(".")
        return int(rest.partition(".")[0] or 0) if first == "1" else int(first)

    @property
    def program(self) -> Path:
        """The interpreter."""
        return self.home / "bin" / "java"


def installed() -> tuple[Java, ...]:
    """Return the runtimes of this machine, the newest first."""
    found = {home: version for home in _homes() if (version := _version(home)) is not None}
    javas = (Java(home, version) for home, version in found.items())
    return tuple(sorted(javas, key=lambda one: one.major, reverse=True))


def choose(major: int | None) -> Java:
    """Return the newest runtime, or the one of a release; EnvironmentUnusable names what is there.

    One that is too old is never chosen.
    """
    there = installed()
    fit = [one for one in there if one.major >= LEAST and major in (None, one.major)]
    if fit:
        return fit[0]
    wanted = f"Java {LEAST} or later" if major is None else f"Java {major}"
    has = ", ".join(f"{one.version} in {one.home}" for one in there)
    package = PACKAGE if major is None else f"openjdk-{major}-jre-headless"
    raise EnvironmentUnusable(
        f"not installed: {wanted} (found {has or 'no Java'}); install: apt-get install {package}, "
        "or set JAVA_HOME to another"
    )


class JavaProgram(Program):
    """Java as a program that a part needs."""

    __slots__ = ()

    def find(self) -> str | None:
        """Return the newest runtime that is new enough."""
        fit = [one for one in installed() if one.major >= LEAST]
        return str(fit[0].program) if fit else None


JAVA = JavaProgram(f"java (version {LEAST} or later)", PACKAGE)


def _homes() -> Iterator[Path]:
    """Yield folders with bin/java, links resolved."""
    path = os.environ.get("PATH", os.defpath)
    programs = [shutil.which("java", path=path)]
    if chosen := os.environ.get("JAVA_HOME"):
        programs.insert(0, str(Path(chosen) / "bin" / "java"))
    programs += sorted(str(one) for one in Path(FOLDERS).glob("*/bin/java"))
    for program in programs:
        if program is not None and os.access(program, os.X_OK):
            yield Path(program).resolve().parent.parent


def _version(home: Path) -> str | None:
    """Read the version from the file that every runtime has since Java 7."""
    try:
        text = (home / "release").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'^JAVA_VERSION="(\d+(?:\.\d+)*)', text, re.MULTILINE)
    return found[1] if found else None
