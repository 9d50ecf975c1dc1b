"""Files of facts: what `audit collect` writes and `audit FILE` reads."""

import json
from collections.abc import Sequence
from pathlib import Path

from loadstone.audit.document import UnreadableFacts, from_tree, to_tree
from loadstone.audit.transport import Collected, own_name
from loadstone.errors import InvalidInput


def as_tree(collected: Sequence[Collected], *, is_lab: bool) -> dict[str, object]:
    """Return the collected documents as JSON."""
    hosts = [
        {"host": one.name, "failure": one.failure}
        if one.document is None
        else {"host": one.name, "facts": to_tree(one.document)}
        for one in collected
    ]
    return {"loadstone_audit": 1, "is_lab": is_lab, "hosts": hosts}


def read(path: Path) -> tuple[tuple[Collected, ...], bool]:
    """Read a file; return its hosts, and whether they are a lab. A lone document is one host."""
    try:
        tree = json.loads(path.read_text("utf-8-sig", errors="replace"), strict=False)
    except OSError as problem:
        raise InvalidInput(f"{path}: {problem.strerror}") from None
    except (ValueError, RecursionError) as wrong:
        raise InvalidInput(f"{path}: not JSON, or cut off: {wrong}") from None
    match tree:
        case {"loadstone_facts": _}:
            return (_document(path, tree),), False
        case {"loadstone_audit": 1, "hosts": []}:
            raise InvalidInput(f"{path}: no hosts in it, so nothing would be checked")
        case {"loadstone_audit": 1, "hosts": [*hosts]}:
            return tuple(_host(path, one) for one in hosts), tree.get("is_lab") is True
    raise InvalidInput(f"{path}: no facts in it; `loadstone audit collect` writes such a file")


def _host(path: Path, tree: object) -> Collected:
    match tree:
        case {"host": str(name), "failure": str(failure)}:
            return Collected(name, failure=failure)
        case {"host": str(name), "facts": facts}:
            try:
                document = from_tree(facts)
            except UnreadableFacts as unreadable:
                return Collected(name, failure=str(unreadable))
            return Collected(name, document)
    raise InvalidInput(f"{path}: every host needs `host`, and `facts` or `failure`")


def _document(path: Path, tree: object) -> Collected:
    try:
        document = from_tree(tree)
    except UnreadableFacts as unreadable:
        raise InvalidInput(f"{path}: {unreadable}") from None
    return Collected(own_name(document), document)
