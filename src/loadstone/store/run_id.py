"""Ids of runs, and the names of the files in their folders. Both become paths."""

import re

from loadstone.errors import InvalidInput

_FORM = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_FILE = re.compile(
    r"((samples|readings)/[\w-]{1,100}\.parquet|profiles/[\w-]{1,100}\.folded)", re.A
)


def is_run_id(text: object) -> bool:
    """Return whether this is the id of a run, so that the folder of that name is the run's."""
    return isinstance(text, str) and _FORM.fullmatch(text) is not None


def require_run_id(text: object) -> str:
    """Return an id of a run; InvalidInput if it is none."""
    if not isinstance(text, str) or not is_run_id(text):
        raise InvalidInput(f"{text!r:.120} is not a run id; ids have letters, digits, - and _")
    return text


def is_file_name(text: str) -> bool:
    """Return whether this names a file of samples, readings or stacks in a run's folder."""
    return _FILE.fullmatch(text) is not None
