"""What the collector's Python part printed: the database, memcached, the cost of a password."""

import json
from collections.abc import Mapping
from typing import Any

from loadstone.audit.document import Document


def parts(document: Document) -> Mapping[str, Any]:
    """Return what the collector's Python part printed; empty where it printed nothing usable."""
    try:
        tree = json.loads(document.text("service"))
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


def part(document: Document, name: str) -> tuple[Mapping[str, Any], str | None]:
    """Return one part of the Python part, and why it is empty."""
    found = parts(document).get(name)
    if not isinstance(found, dict):
        return {}, "no Python of Keystone on this host, or it did not end in time"
    error = found.get("error")
    return ({}, str(error)) if error is not None else (found, None)
