"""Commands for a shell that sets the variables of a target."""

import os
import re
from collections.abc import Iterable

_PREFIXES = ("OS_", "LOADSTONE_OIDC_")
# Where clouds.yaml is: they name no cloud.
_PLACES = ("OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE")


def unset(names: Iterable[str]) -> str:
    """Return the command that unsets what the environment has of another target; empty if nothing.

    `names` will be set. With the rest of another target's, such as OS_CLOUD or OS_PROJECT_ID,
    clients would address that target, or a mixture of both.
    """
    given = tuple(names)
    prefixes = tuple(prefix for prefix in _PREFIXES if any(n.startswith(prefix) for n in given))
    kept = {*given, *_PLACES}
    others = sorted(
        name
        for name in os.environ
        if name.startswith(prefixes) and name not in kept and re.fullmatch(r"\w+", name, re.ASCII)
    )
    return f"unset {' '.join(others)}" if others else ""
