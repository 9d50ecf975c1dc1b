"""The builds of the engine that are measured: the release wheel, and what `make install` leaves."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / "target/verify/release"


@cache
def release_python() -> str:
    """Return the Python of an environment with the release wheel (fat LTO), built when needed."""
    uv = shutil.which("uv") or str(ROOT / ".uv/bin/uv")
    python = ENVIRONMENT / "bin/python"
    steps = (
        [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(ENVIRONMENT)],
        # uv keeps the wheel and builds it again only when a source of the engine has changed.
        [uv, "pip", "install", "--quiet", "--python", str(python), str(ROOT)],
    )
    environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    for step in steps:
        subprocess.run(step, check=True, cwd=ROOT, env=environment)
    return str(python)


# Name in the tables -> the Python that has this build.
BUILDS: dict[str, Callable[[], str]] = {
    "loadstone": release_python,
    "loadstone, quick build": lambda: sys.executable,
}
