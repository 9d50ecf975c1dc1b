"""Host lists and Ansible inventories, as INI or YAML."""

import re
import shlex
from pathlib import Path
from typing import Any

from loadstone.errors import InvalidInput
from loadstone.system import yaml_file

Hosts = dict[str, dict[str, str]]  # name -> variables that begin with ansible_
MOST_HOSTS = 1000
_RANGE = re.compile(r"\[(\d+|[a-z]):(\d+|[a-z])\]")


def read(path: Path) -> Hosts:
    """Return the hosts of an inventory file, which may be a plain list of hosts."""
    hosts = _yaml(path) if path.suffix in (".yml", ".yaml", ".json") else _ini(path)
    if not hosts:
        raise InvalidInput(f"{path}: no hosts in it; a line per host, or an Ansible inventory")
    return hosts


def _ini(path: Path) -> Hosts:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{path}: {getattr(problem, 'strerror', None) or 'not text'}") from None
    hosts: Hosts = {}
    groups: dict[str, dict[str, str]] = {}  # variables of [group:vars]
    members: dict[str, list[str]] = {}
    section, kind = "ungrouped", ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split(" #")[0].strip()
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            section, _, kind = line.strip("[]").partition(":")
        elif kind == "vars":
            name, _, value = line.partition("=")
            groups.setdefault(section, {})[name.strip()] = value.strip().strip("'\"")
        elif kind == "children":
            members.setdefault(section, []).append(f"@{line}")
        else:
            for host, variables in _line(path, number, line).items():
                hosts[host] = {**hosts.get(host, {}), **variables}
                members.setdefault(section, []).append(host)
    for group, variables in groups.items():
        for host in hosts if group == "all" else _members(group, members, set()):
            hosts[host] = {**variables, **hosts.get(host, {})}
    return hosts


def _members(group: str, members: dict[str, list[str]], seen: set[str]) -> list[str]:
    """Return the hosts of a group and of its children, each group once."""
    names = []
    seen.add(group)
    for name in members.get(group, []):
        if not name.startswith("@"):
            names.append(name)
        elif name[1:] not in seen:
            names += _members(name[1:], members, seen)
    return names


def _line(path: Path, number: int, line: str) -> Hosts:
    try:
        fields = shlex.split(line)
    except ValueError as wrong:
        raise InvalidInput(f"{path}:{number}: {line!r}: {wrong}") from None
    variables = dict(word.split("=", 1) for word in fields[1:] if "=" in word)
    return dict.fromkeys(_expanded(path, number, fields[0]), variables)


def _expanded(path: Path, number: int, pattern: str) -> list[str]:
    """Return the hosts of node[01:12].example."""
    match = _RANGE.search(pattern)
    if match is None:
        if not re.fullmatch(r"[\w.@:%-]+", pattern) or pattern.startswith("-"):
            raise InvalidInput(f"{path}:{number}: {pattern!r} is not the name of a host")
        return [pattern]
    _require_few(path, number, pattern)
    first, last = match[1], match[2]
    if first.isdigit() != last.isdigit():
        raise InvalidInput(f"{path}:{number}: {pattern!r} is not a range of hosts")
    if first.isdigit():
        each = [f"{value:0{len(first)}d}" for value in range(int(first), int(last) + 1)]
    else:
        each = [chr(code) for code in range(ord(first), ord(last) + 1)]
    return [
        host
        for value in each
        for host in _expanded(path, number, _RANGE.sub(value, pattern, count=1))
    ]


def _require_few(path: Path, number: int, pattern: str) -> None:
    """Refuse ranges whose product is more than MOST_HOSTS."""
    count = 1
    for first, last in _RANGE.findall(pattern):
        if first.isdigit() and last.isdigit():
            count *= max(int(last) - int(first) + 1, 0)
        elif not first.isdigit() and not last.isdigit():
            count *= max(ord(last) - ord(first) + 1, 0)
    if count > MOST_HOSTS:
        raise InvalidInput(f"{path}:{number}: {pattern!r} is more than {MOST_HOSTS} hosts")


def _yaml(path: Path) -> Hosts:
    tree = yaml_file.read(path, may_repeat=True)
    if not isinstance(tree, dict):
        raise InvalidInput(f"{path}: must be a mapping of groups, as `all: {{hosts: ...}}`")
    hosts: Hosts = {}
    for name, group in tree.items():
        _group(path, str(name), group, {}, hosts)
    return hosts


def _group(path: Path, name: str, group: Any, above: dict[str, str], hosts: Hosts) -> None:
    if group is None:
        return
    if not isinstance(group, dict):
        raise InvalidInput(f"{path}: group {name} must be a mapping of hosts, children and vars")
    for part in ("hosts", "children"):
        if not isinstance(group.get(part) or {}, dict):
            raise InvalidInput(f"{path}: {part} of group {name} must be a mapping, as `web1:`")
    variables = above | _variables(group.get("vars"))
    for pattern, own in (group.get("hosts") or {}).items():
        for host in _expanded(path, 1, str(pattern)):
            hosts[host] = {**variables, **hosts.get(host, {}), **_variables(own)}
    for child, inner in (group.get("children") or {}).items():
        _group(path, str(child), inner, variables, hosts)


def _variables(tree: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in tree.items()} if isinstance(tree, dict) else {}
