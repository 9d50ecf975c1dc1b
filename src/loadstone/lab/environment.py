"""An environment of its own for the service: never Loadstone's.

One per release and Python, shared by the deployments. It is made in its place (its scripts name
that place) under a lock, and counts only once its marker stands: half-made ones are made anew.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from loadstone import files
from loadstone.errors import EnvironmentUnusable
from loadstone.lab import locks, room
from loadstone.lab.part import Facts, Part, Say
from loadstone.lab.processes import MARK

MARKER = "loadstone.json"  # the packages that were asked for and are installed
LOG_LINES = 4
SIZE_MB = 150  # Keystone 30 and its web servers
_OURS = getattr(sys, "_base_executable", sys.executable)


@dataclass(frozen=True, slots=True)
class Environment(Part):
    """The packages of a service, and the interpreter that runs them."""

    root: Path  # holds all environments
    title: str  # "keystone-30.0.0"
    contents: tuple[str, ...]
    constraints: Path | None  # pins what was tested
    deployment: Path  # its folder: the mark that the installer carries
    interpreter: str | None = None  # in place of the one that runs Loadstone
    pip: str | None = None  # for a Python too old for uv: the last pip that runs on it
    name: str = "environment"

    @property
    def folder(self) -> Path:
        """Where it is."""
        python = f"py{sys.version_info[0]}.{sys.version_info[1]}"
        if self.interpreter is not None:
            python = self.interpreter.strip("/").replace("/", "-")
        return self.root / f"{self.title}-{python}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def _log(self) -> Path:
        return self.root / f"{self.folder.name}.log"

    def prepare(self, say: Say) -> None:
        """Make it, or add the packages that it lacks."""
        with locks.held(self.root / f".{self.folder.name}.lock"):
            installed = self._installed()
            if installed is not None and set(self.contents) <= installed:
                return
            if installed is None:
                say(f"making an environment for {self.title} (once)")
                room.require(self.root, SIZE_MB)
                shutil.rmtree(self.folder, ignore_errors=True)
                self._create()
            if self.constraints is None:
                say(f"no tested set of packages for {self.title}: the newest ones are taken")
            missing = tuple(p for p in self.contents if p not in (installed or ()))
            if missing:
                say(f"installing {', '.join(missing)}")
                self._install(missing)
            marker = json.dumps(sorted({*self.contents, *(installed or ())}))
            files.write(self.folder / MARKER, marker)

    def facts(self) -> Facts:
        """The Python that serves."""
        version = (self.folder / "pyvenv.cfg").read_text()
        lines = (line.partition("=") for line in version.splitlines())
        found = {key.strip(): value.strip() for key, _, value in lines}
        return (("python", found.get("version_info") or found.get("version", "")),)

    def logs(self) -> tuple[Path, ...]:
        """What the installer said."""
        return (self._log,)

    def _create(self) -> None:
        interpreter, uv = self.interpreter or _OURS, self._uv()
        if uv is not None:
            self._run((uv, "venv", "--quiet", "--python", interpreter, str(self.folder)))
            return
        self._run((interpreter, "-m", "venv", str(self.folder)))
        if self.pip is not None:
            # The one that came with such a Python knows no wheels of today, and would build all.
            self._run((*self._pip(), self.pip))

    def _install(self, packages: tuple[str, ...]) -> None:
        pinned = ("--constraint", str(self.constraints)) if self.constraints else ()
        uv = self._uv()
        if uv is None:
            if not (self.folder / "bin" / "pip").exists():  # uv made the environment, without one
                self._run((str(self.python), "-m", "ensurepip", "--default-pip"))
            command = self._pip()
        else:
            command = (uv, "pip", "install", "--quiet", "--python", str(self.python))
        self._run((*command, *pinned, *packages))

    def _pip(self) -> tuple[str, ...]:
        return (str(self.python), "-m", "pip", "install", "--quiet")

    def _uv(self) -> str | None:
        return find_uv() if self.pip is None else None

    def _installed(self) -> set[str] | None:
        try:
            return set(json.loads((self.folder / MARKER).read_text()))
        except (OSError, ValueError):
            return None

    def _run(self, arguments: tuple[str, ...]) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        variables = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        variables |= {"UV_PYTHON_DOWNLOADS": "never", MARK: str(self.deployment)}
        # In its own folder: a pyproject.toml of the user's is no business of uv's here.
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=variables,
            cwd=self.root,
            check=False,
        )
        if done.returncode != 0:
            self._fail(done.stdout)

    def _fail(self, said: str) -> NoReturn:
        if self._installed() is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        if "No space left" in said:
            raise EnvironmentUnusable(f"cannot install {self.title}: no room left in {self.root}")
        self._log.write_text(said)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        raise EnvironmentUnusable(
            f"cannot install {self.title} (network? package index? log: {self._log}):\n  "
            + "\n  ".join(lines[-LOG_LINES:])
        )


def find_uv() -> str | None:
    """Give uv: on the PATH, beside our interpreter, or where `make install` puts it."""
    prefix = Path(sys.prefix)
    beside = (prefix / "bin" / "uv", prefix.parent / ".uv" / "bin" / "uv")
    return shutil.which("uv") or next((str(p) for p in beside if os.access(p, os.X_OK)), None)
