"""Host lists and Ansible inventories, as INI or YAML."""

import re
import shlex
from collections.abc import Hashable
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from loadstone.errors import InvalidInput
from loadstone.system import yaml_file

Hosts = dict[str, dict[str, str]]  # name -> variables that begin with ansible_
MOST_HOSTS = 1000
ALL = "all"  # the group of all hosts
# As Ansible reads them; [fd00::1]:22 is a host.
_HEADING = re.compile(r"\[([^:\]\s]+)(?::(\w+))?\]")
_RANGE = re.compile(r"\[(\d+|[a-z]):(\d+|[a-z])\]")
_WITH_PORT = re.compile(r"((?:[^:[\]]|\[[^\]]*\])+):(\d+)")  # an IPv6 address has more colons


@dataclass(slots=True)
class _HostGroup:
    """A group of an inventory."""

    variables: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Inventory:
    """Hosts with their own variables, and groups; a file may name a group several times."""

    hosts: Hosts = field(default_factory=dict)
    groups: dict[str, _HostGroup] = field(default_factory=dict)

    def group(self, name: str) -> _HostGroup:
        return self.groups.setdefault(name, _HostGroup())

    def add(self, group: str, host: str, variables: dict[str, str]) -> None:
        self.hosts.setdefault(host, {}).update(variables)
        self.group(group).hosts[host] = None

    def resolved(self) -> Hosts:
        """Return each host with the variables of its groups.

        As in Ansible, those of a child count more than those of its parents, of two groups of one
        depth those of the later name, and a host's own more than all.
        """
        of_groups: Hosts = {host: {} for host in self.hosts}
        depths = self._depths()
        for name in sorted(self.groups, key=lambda name: (depths[name], name)):
            for host in self.hosts if name == ALL else self._members(name, set()):
                of_groups[host].update(self.groups[name].variables)
        return {host: {**of_groups[host], **own} for host, own in self.hosts.items()}

    def _depths(self) -> dict[str, int]:
        """Return the longest way from `all` to each group; groups in a circle count once."""
        depths = {name: 0 if name == ALL else 1 for name in self.groups}
        for _ in self.groups:
            for name, group in self.groups.items():
                for child in group.children:
                    depths[child] = min(max(depths[child], depths[name] + 1), len(depths))
        return depths

    def _members(self, group: str, seen: set[str]) -> list[str]:
        """Return the hosts of a group and of its children, each group once."""
        seen.add(group)
        names = list(self.groups[group].hosts)
        for child in self.groups[group].children:
            if child not in seen:
                names += self._members(child, seen)
        return names


def read(path: Path) -> Hosts:
    """Return the hosts of an inventory file, which may be a plain list of hosts."""
    found = _yaml(path) if path.suffix in (".yml", ".yaml", ".json") else _ini(path)
    hosts = found.resolved()
    if not hosts:
        raise InvalidInput(f"{path}: no hosts in it; a line per host, or an Ansible inventory")
    return hosts


def _ini(path: Path) -> _Inventory:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{path}: {getattr(problem, 'strerror', None) or 'not text'}") from None
    found = _Inventory()
    section, kind = "ungrouped", ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split(" #")[0].strip()
        if not line or line.startswith(("#", ";")):
            continue
        if heading := _HEADING.match(line):
            section, kind = heading[1], heading[2] or ""
        elif kind == "vars":
            name, _, value = line.partition("=")
            found.group(section).variables[name.strip()] = _unquoted(value.strip())
        elif kind == "children":
            found.group(line)
            found.group(section).children[line] = None
        else:
            try:
                for host, variables in _line(line).items():
                    found.add(section, host, variables)
            except InvalidInput as wrong:
                raise InvalidInput(f"{path}:{number}: {wrong}") from None
    return found


def _unquoted(text: str) -> str:
    """Return a text without the quotes around it; those within it belong to it."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _line(line: str) -> Hosts:
    try:
        fields = shlex.split(line)
    except ValueError as wrong:
        raise InvalidInput(f"{line!r}: {wrong}") from None
    pattern, port = _without_port(fields[0])
    variables = port | dict(word.split("=", 1) for word in fields[1:] if "=" in word)
    return dict.fromkeys(_expanded(pattern), variables)


def _without_port(pattern: str) -> tuple[str, dict[str, str]]:
    """Return the hosts of `web[1:3]:2222` or `[::1]:22`, and their port as a variable."""
    found = _WITH_PORT.fullmatch(pattern)
    host, variables = (found[1], {"ansible_port": found[2]}) if found else (pattern, {})
    if host.startswith("[") and host.endswith("]") and _is_ipv6(host[1:-1]):
        host = host[1:-1]
    return host, variables


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _expanded(pattern: str) -> list[str]:
    """Return the hosts of node[01:12].example."""
    match = _RANGE.search(pattern)
    if match is None:
        if not re.fullmatch(r"[\w.@:%-]+", pattern) or pattern.startswith("-"):
            raise InvalidInput(f"{pattern!r} is not the name of a host")
        return [pattern]
    _require_few(pattern)
    first, last = match[1], match[2]
    if first.isdigit() != last.isdigit():
        raise InvalidInput(f"{pattern!r} is not a range of hosts")
    if first.isdigit():
        each = [f"{value:0{len(first)}d}" for value in range(int(first), int(last) + 1)]
    else:
        each = [chr(code) for code in range(ord(first), ord(last) + 1)]
    if not each:
        raise InvalidInput(f"{pattern!r} is not a range of hosts: its end comes before its begin")
    return [host for value in each for host in _expanded(_RANGE.sub(value, pattern, count=1))]


def _require_few(pattern: str) -> None:
    """Refuse ranges whose product is more than MOST_HOSTS."""
    count = 1
    for first, last in _RANGE.findall(pattern):
        if first.isdigit() and last.isdigit():
            count *= max(int(last) - int(first) + 1, 0)
        elif not first.isdigit() and not last.isdigit():
            count *= max(ord(last) - ord(first) + 1, 0)
    if count > MOST_HOSTS:
        raise InvalidInput(f"{pattern!r} is more than {MOST_HOSTS} hosts")


def _yaml(path: Path) -> _Inventory:
    file = yaml_file.read(path, may_repeat=True)
    if not isinstance(file.content, dict):
        raise InvalidInput(f"{file.place()}: must be a mapping of groups, as `all: {{hosts: ...}}`")
    found = _Inventory()
    for name, group in file.content.items():
        _group(file, (name,), group, found)
    return found


def _group(
    file: yaml_file.YamlFile, keys: tuple[Hashable, ...], tree: Any, found: _Inventory
) -> None:
    name = str(keys[-1])
    group = found.group(name)
    if tree is None:
        return
    if not isinstance(tree, dict):
        raise InvalidInput(
            f"{file.place(*keys)}: group {name} must be a mapping of hosts, children and vars"
        )
    for part in ("hosts", "children"):
        if not isinstance(tree.get(part) or {}, dict):
            raise InvalidInput(
                f"{file.place(*keys, part)}: {part} of group {name} must be a mapping, as `web1:`"
            )
    group.variables.update(_variables(tree.get("vars")))
    for key, own in (tree.get("hosts") or {}).items():
        pattern, port = _without_port(str(key))
        try:
            hosts = _expanded(pattern)
        except InvalidInput as wrong:
            raise InvalidInput(f"{file.place(*keys, 'hosts', key)}: {wrong}") from None
        for host in hosts:
            found.add(name, host, port | _variables(own))
    for child, inner in (tree.get("children") or {}).items():
        group.children[str(child)] = None
        _group(file, (*keys, "children", child), inner, found)


def _variables(tree: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in tree.items()} if isinstance(tree, dict) else {}
