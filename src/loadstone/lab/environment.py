"""Python environments for services, separate from Loadstone's own.

There is one per release and Python, shared by deployments. It is created in its final location (its
scripts contain that path) under a lock. It is valid only if its marker file fits: one that is
incomplete, was moved, has lost its interpreter, or was made with other constraints is created
again. A patched release copies the environment of the release, which takes seconds.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import diskspace
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.processes import MARK
from loadstone.system import files, locks
from loadstone.system.redaction import is_secret
from loadstone.system.say import Say

MARKER = "loadstone.json"  # the packages that were requested and are installed, and where
LOG_LINES = 4
SIZE_MB = 150  # of Keystone 30 and its web servers
_OURS = getattr(sys, "_base_executable", sys.executable)


@dataclass(frozen=True, slots=True)
class ServiceEnvironment(Part):
    """The packages of a service, and the interpreter that runs them."""

    root: Path  # holds all environments
    title: str  # "keystone-30.0.0"
    contents: tuple[str, ...]
    constraints: Path | None  # pins the tested versions
    deployment: Path  # folder of the deployment, to mark the installer's processes with
    interpreter: str | None = None  # instead of the one that runs Loadstone
    pip: str | None = None  # pip requirement, for a Python too old for uv
    patch: Path | None = None  # applied to a copy of the environment `unpatched`
    unpatched: str = ""  # its title
    variables: tuple[tuple[str, str], ...] = ()  # for the installer
    size_mb: int = SIZE_MB
    # Raises if what was installed (a patch, a wheel) has changed since the title was chosen.
    require_unchanged: Callable[[], None] | None = None
    name: str = "environment"

    @property
    def folder(self) -> Path:
        """The environment's folder."""
        python = f"py{sys.version_info[0]}.{sys.version_info[1]}"
        if self.interpreter is not None:
            python = self.interpreter.strip("/").replace("/", "-")
        return self.root / f"{self.title}-{python}"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def _log(self) -> Path:
        return self.root / f"{self.folder.name}.log"

    def prepare(self, say: Say) -> None:
        """Create the environment, or add missing packages."""
        with locks.held(self.root / f".{self.folder.name}.lock"):
            installed = self.installed()
            if installed is not None and set(self.contents) <= installed:
                return
            is_new = installed is None
            if installed is None:
                installed = self._make(say)
            if self.constraints is None:
                say(f"no tested set of packages for {self.title}: the newest ones are taken")
            missing = tuple(p for p in self.contents if p not in installed)
            if missing:
                say(f"installing {', '.join(missing)}")
                self._install(missing)
            # Without its mark, an environment is made anew.
            if is_new and self.require_unchanged is not None:
                try:
                    self.require_unchanged()
                except EnvironmentUnusable:
                    # Its title names a content that is gone, so nobody would ask for it again.
                    shutil.rmtree(self.folder, ignore_errors=True)
                    raise
            self._mark({*self.contents, *installed})

    def _make(self, say: Say) -> set[str]:
        """Create the environment; return the packages that it holds."""
        if self.patch is not None:
            return self._make_patched(self.patch, say)
        say(f"making an environment for {self.title} (once)")
        diskspace.require(self.root, self.size_mb)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._create()
        return set()

    def _make_patched(self, patch: Path, say: Say) -> set[str]:
        original = replace(self, title=self.unpatched, patch=None, require_unchanged=None)
        original.prepare(say)
        say(f"copying the environment of {original.title}")
        shutil.rmtree(self.folder, ignore_errors=True)
        with locks.held(self.root / f".{original.folder.name}.lock"):
            installed = original.installed() or set()
            diskspace.copy(original.folder, self.folder)
        self._relocate_scripts(original.folder)
        say(f"applying {patch.name}")
        self._apply(patch)
        return installed

    def _relocate_scripts(self, original: Path) -> None:
        """Replace the path of the original in scripts: their first line names the interpreter."""
        before, after = os.fsencode(original), os.fsencode(self.folder)
        for script in (self.folder / "bin").iterdir():
            if script.is_symlink() or not script.is_file():
                continue
            text = script.read_bytes()
            if before in text and b"\0" not in text:  # no machine code
                script.write_bytes(text.replace(before, after))

    def facts(self) -> Facts:
        """Return the Python version."""
        version = (self.folder / "pyvenv.cfg").read_text()
        lines = (line.partition("=") for line in version.splitlines())
        found = {key.strip(): value.strip() for key, _, value in lines}
        return (("python", found.get("version_info") or found.get("version", "")),)

    def logs(self) -> tuple[Path, ...]:
        """Return the installer's log."""
        return (self._log,)

    def _create(self) -> None:
        interpreter, uv = self.interpreter or _OURS, self._uv()
        if uv is not None:
            self._run((uv, "venv", "--quiet", "--python", interpreter, str(self.folder)))
            return
        self._run((interpreter, "-m", "venv", str(self.folder)))
        if self.pip is not None:
            # The bundled pip of such an old Python does not support current wheels and would
            # compile everything.
            self._run((*self._pip(), self.pip))

    def _install(self, packages: tuple[str, ...]) -> None:
        pinned = ("--constraint", str(self.constraints)) if self.constraints else ()
        uv = self._uv()
        if uv is None:
            if not (self.folder / "bin" / "pip").exists():  # uv created the environment without pip
                self._run((str(self.python), "-m", "ensurepip", "--default-pip"))
            command = self._pip()
        else:
            command = (uv, "pip", "install", "--quiet", "--python", str(self.python))
        self._run((*command, *pinned, *packages))

    def _apply(self, patch: Path) -> None:
        """Apply a patch whose paths are relative to the root of the sources."""
        program = shutil.which("patch")
        if program is None:
            raise EnvironmentUnusable("patch is not installed (apt install patch)")
        [packages] = self.folder.glob("lib/python*/site-packages")
        done = subprocess.run(
            (program, "--strip=1", "--forward", "--batch", f"--directory={packages}"),
            input=patch.read_bytes(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        # It says which files it changes; of an empty file it says nothing, and succeeds.
        if done.returncode != 0 or not lines:
            shutil.rmtree(self.folder, ignore_errors=True)
            why = lines[-1] if lines else "it changes no file"
            raise EnvironmentUnusable(f"{patch} does not apply to {self.title}: {why}")

    def _pip(self) -> tuple[str, ...]:
        return (str(self.python), "-m", "pip", "install", "--quiet")

    def _uv(self) -> str | None:
        return find_uv() if self.pip is None else None

    def installed(self) -> set[str] | None:
        """Return the installed packages, or None if the environment cannot be used."""
        try:
            marker = json.loads((self.folder / MARKER).read_text())
            packages = set(marker.pop("packages"))
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            return None
        is_whole = marker == self._origin() and os.access(self.python, os.X_OK)
        return packages if is_whole else None

    def _mark(self, packages: set[str]) -> None:
        marker = {"packages": sorted(packages), **self._origin()}
        files.write(self.folder / MARKER, json.dumps(marker))

    def _origin(self) -> dict[str, str]:
        """Return what the environment depends on besides its packages."""
        constraints = self.constraints.read_bytes() if self.constraints else b""
        return {
            "folder": str(self.folder),
            "constraints": hashlib.sha256(constraints).hexdigest(),
        }

    def _run(self, arguments: tuple[str, ...]) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        variables = {name: value for name, value in os.environ.items() if _is_for_installers(name)}
        variables |= {"UV_PYTHON_DOWNLOADS": "never", MARK: str(self.deployment)}
        variables |= dict(self.variables)
        # Run in its own folder, so that uv does not read a pyproject.toml of the user.
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

    def _fail(self, output: str) -> NoReturn:
        if self.installed() is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        if "No space left" in output:
            raise EnvironmentUnusable(f"cannot install {self.title}: no space left in {self.root}")
        self._log.write_text(output)
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        raise EnvironmentUnusable(
            f"cannot install {self.title} (network? package index? log: {self._log}):\n  "
            + "\n  ".join(lines[-LOG_LINES:])
        )


def _is_for_installers(name: str) -> bool:
    """Return whether pip and uv get a variable: no secrets except those of package indexes."""
    if name.startswith(("PIP_", "UV_")):
        return True
    return (
        name not in ("VIRTUAL_ENV", "PYTHONPATH")
        and not name.startswith(("OS_", "LOADSTONE_STORE"))
        and not is_secret(name)
    )


def find_uv() -> str | None:
    """Return the path of uv: on the PATH, beside our Python, or where `make install` puts it."""
    prefix = Path(sys.prefix)
    beside = (prefix / "bin" / "uv", prefix.parent / ".uv" / "bin" / "uv")
    return shutil.which("uv") or next((str(p) for p in beside if os.access(p, os.X_OK)), None)
