"""Which image, flavor or network a task file means by a name or a pattern, as in Rally."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


def choose(kind: str, reference: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the id that a reference means, of all `names` by their ids; LookupError if none.

    An exact name comes first, then the pattern. Only of images may several match: it is the last
    by name then, unless the reference is `accurate`.
    """
    name, is_accurate = reference.get("name"), reference.get("accurate", False)
    ordered = sorted(names, key=lambda one: names[one])
    matches = [one for one in ordered if name and names[one] == name]
    is_exact = bool(matches)
    if not is_exact and not (name and is_accurate):
        with suppress(re.error):  # a name that is no pattern
            pattern = re.compile(str(name or reference["regex"]))
            matches = [one for one in ordered if pattern.search(names[one])]
    if not matches:
        raise LookupError(f"no {kind} is {dict(reference)}")
    if len(matches) > 1 and (is_exact or is_accurate or kind != "image"):
        raise LookupError(f"more than one {kind} is {dict(reference)}: {', '.join(matches)}")
    return matches[-1]
