"""Output of the collector's Python part: database, memcached, cost of a password check."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from loadstone.audit.document import Document

NOT_IN_TIME = "it did not end in time"


def parts(document: Document) -> Mapping[str, Any]:
    """Return the last readable output of the collector's Python part; empty without one.

    It prints a first output before it runs slow programs, and the full output after them.
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
