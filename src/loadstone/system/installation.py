"""The command that installs missing Python packages."""

import shlex
import sys
from importlib.util import find_spec


def pip_install(*packages: str) -> str:
    """Return the command that installs packages where this Python finds them."""
    python, wanted = shlex.quote(sys.executable), " ".join(map(shlex.quote, packages))
    if find_spec("pip") is None:  # as where uv made the environment
        return f"uv pip install {wanted} --python {python}"
    return f"{python} -m pip install {wanted}"
