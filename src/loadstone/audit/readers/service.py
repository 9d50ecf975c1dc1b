"""What the collector's Python part printed: the database, memcached, the cost of a password."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from loadstone.audit.document import Document

NOT_IN_TIME = "it did not end in time"


def parts(document: Document) -> Mapping[str, Any]:
    """Return what the collector's Python part printed last; empty where nothing is usable.

    It prints what it knows before the slow programs, and all of it when these have ended.
    """
    for line in reversed(document.text("service").splitlines()):
        with suppress(ValueError, RecursionError):  # cut off in the middle of a line
            tree = json.loads(line)
            if isinstance(tree, dict):
                return tree
    return {}


def part(document: Document, name: str) -> tuple[Mapping[str, Any], str | None]:
    """Return one part of the Python part, and why it is empty."""
    known = parts(document)
    found = known.get(name)
    if not isinstance(found, dict):
        return (
            {},
            NOT_IN_TIME
            if known
            else "no Python of Keystone on this host, or it did not end in time",
        )
    error = found.get("error")
    return ({}, str(error)) if error is not None else (found, None)
