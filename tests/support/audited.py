"""Documents of the collector as tests write them: a healthy node, with parts of it changed."""

import json
from pathlib import Path

import yaml

from loadstone.audit.document import Document

AUDIT = Path(__file__).parent.parent / "audit"
CONTEXT = {
    "audit.is_lab": False,
    "audit.hosts": 1,
    "audit.rate_per_s": 0.0,
    "audit.logins_per_s": 0.0,
}


def healthy() -> dict:
    return yaml.load((AUDIT / "base.yaml").read_text(), yaml.CSafeLoader)


def document(changes: dict | None = None) -> Document:
    """Return the healthy node with changed sections; `domains` and others may be added."""
    tree = healthy()
    for section, change in (changes or {}).items():
        tree[section] = _changed(section, tree.get(section), change)
    return Document({name: _text(name, value) for name, value in tree.items()})


def _changed(section, before, change):
    if section == "fernet" and change == "keys:100":
        rows = "".join(f"{n} 600 0 1795300000 d{n}\n" for n in range(100))
        return "@ /etc/keystone/fernet-keys 700 0\n" + rows
    if section == "sysctl" and isinstance(change, dict):
        lines = before.splitlines()
        for name, value in change.items():
            lines = [f"{name}={value}" if li.startswith(f"{name}=") else li for li in lines]
        return "\n".join(lines) + "\n"
    if section == "service":
        return _merged(before, change)
    if section in ("meta", "cpu"):
        return {**before, **change}
    return change


def _merged(before, change):
    if not (isinstance(before, dict) and isinstance(change, dict)):
        return change
    return {**before, **{key: _merged(before.get(key), value) for key, value in change.items()}}


def _text(name, value):
    if isinstance(value, str):
        return value
    if name == "service":
        return json.dumps(value)
    if any(str(key).startswith("/") for key in value):
        return "".join(_file(path, text) for path, text in value.items())
    return "".join(f"{key}={one}\n" for key, one in value.items())


def _file(path, text):
    lines = enumerate(text.splitlines(), 1)
    return f"@ {path}\n" + "".join(f"{number}\t{line}\n" for number, line in lines)
