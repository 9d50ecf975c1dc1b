"""A folder from which Loadstone is installed without internet: its wheel and its dependencies.

Dependencies are those of uv.lock, checked by their hashes. They are for the processor and the minor
version of the Python that runs this; other wheels would not be installed there.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from release.tree import ROOT

KEYSTONE = "30.0.0"  # what `loadstone demo` and `loadstone lab up` install by default
RELEASES = ROOT / "src/loadstone/lab/keystone/releases"


def fill(
    folder: Path, wheels: Path, uv: str, extras: Sequence[str] = (), *, has_keystone: bool = False
) -> int:
    """Write the wheels of Loadstone and of what it needs; return the bytes of the folder.

    With `has_keystone`, also what a lab with Keystone's default release installs.
    """
    built = sorted(wheels.glob("loadstone-*.whl"))
    if not built:
        raise SystemExit(f"no wheel in {wheels}; build it first: make wheels")
    folder.mkdir(parents=True, exist_ok=True)
    requirements = folder / "requirements.txt"
    export = [uv, "export", "--quiet", "--locked", "--format=requirements.txt", "--no-dev"]
    export += ["--no-emit-project", "--no-annotate", "--no-header", f"--output-file={requirements}"]
    export += [f"--extra={extra}" for extra in extras]
    subprocess.run(export, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    _collect(folder, "--require-hashes", f"--requirement={requirements}")
    if has_keystone:
        pins = RELEASES / f"{KEYSTONE}.txt"
        uwsgi = next(line for line in pins.read_text().splitlines() if line.startswith("pyuwsgi"))
        _collect(folder, f"--constraint={pins}", f"keystone=={KEYSTONE}", uwsgi)
    for wheel in built:
        shutil.copy(wheel, folder)
    return sum(path.stat().st_size for path in folder.iterdir())


def _collect(folder: Path, *wanted: str) -> None:
    """Download wheels; build those of packages that publish only their sources."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, f"--wheel-dir={folder}", *wanted], check=True)
