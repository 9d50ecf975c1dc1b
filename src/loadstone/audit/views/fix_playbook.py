"""The fixes as an Ansible playbook, for a human to review: with check mode and a way back."""

import re
from collections.abc import Iterator
from typing import Any, Literal

import yaml

from loadstone.audit.evaluate import Audit, RuleResult
from loadstone.audit.facts import Facts
from loadstone.audit.readers.web import uwsgi_fact
from loadstone.audit.rule import SettingChange

HEADER = """\
# Fixes that `loadstone audit` proposes. Review every task before you run this.
#
#   ansible-playbook -i INVENTORY FILE --check --diff --tags fix     shows what would change
#   ansible-playbook -i INVENTORY FILE --tags fix                    changes it; keeps a copy
#   ansible-playbook -i INVENTORY FILE --tags undo                   puts the copies back
#
# Needs the collections community.general and ansible.posix. Nothing is restarted: the task
# "restart" of each fix says what must be.
"""
OF_PROCESS = re.compile(r"/proc/\d+/")
KEPT = ".before-loadstone-audit"
FILES = {"keystone": "conf.file", "uwsgi": "uwsgi.file"}
# The last file that sets a value counts, and 99-sysctl.conf is a link to /etc/sysctl.conf.
SYSCTL = "/etc/sysctl.d/99-zz-loadstone-audit.conf"


def render(audit: Audit) -> str:
    """Return the playbook: a play per host that has findings."""
    plays = [
        _play(host.host, own, host.facts) for host in audit.hosts if (own := audit.findings(host))
    ]
    return HEADER + yaml.safe_dump(plays, sort_keys=False, width=100, allow_unicode=True)


def _path(facts: Facts, setting: SettingChange) -> str | None:
    """Return the file that decides on a setting: the one that sets it, else the first.

    None for a setting of uWSGI's arguments or of Keystone's environment, which change with the
    service only, for a file in a container, which lasts no longer than that, and for a name with
    braces, which Ansible would evaluate on the machine that runs the playbook.
    """
    where, option = setting.where, setting.option
    if where not in FILES:
        return None
    first = facts.values.get(FILES[where])
    if not first:
        return None
    fact = f"conf.{setting.section}.{option}" if where == "keystone" else uwsgi_fact(option)
    origin = facts.origins.get(fact)
    if origin is None and where == "uwsgi":
        return None
    path = str(first) if origin is None else origin.path
    return None if OF_PROCESS.match(path) or "{" in path else path


def _play(name: str, results: tuple[RuleResult, ...], facts: Facts) -> dict[str, Any]:
    host = name.replace("{", "?")  # as in `_path`: a host may name itself
    changed: dict[str, None] = {}  # files, in order
    fixes: list[dict[str, Any]] = []
    seen: set[tuple[str, str, str]] = set()
    for result in results:
        tasks = []
        is_partial = False  # a setting has no file that a task could change
        for setting in result.settings:
            key = (setting.where, setting.section, setting.option)
            path, is_first = _path(facts, setting), key not in seen
            seen.add(key)
            if not is_first:
                continue
            if setting.where in FILES and path is None:
                is_partial = True
                continue
            tasks.append(_setting(result, setting, path))
            if path is not None:
                changed[path] = None
        fixes += tasks
        if is_partial or not tasks:
            fixes.append(_by_hand(result))
        if tasks and result.rule.fix.restart:
            text = f"restart {result.rule.fix.restart}"
            fixes.append(_message(result, "restart", text))
    copies = [_copy(path, f"{path}{KEPT}", "fix") for path in changed]
    undo = [step for number, path in enumerate(changed, 1) for step in _put_back(path, number)]
    undo.append(
        {
            "name": "undo kernel settings",
            "ansible.builtin.file": {"path": SYSCTL, "state": "absent"},
            "tags": ["undo", "never"],
        }
    )
    undo.append(
        {
            "name": "undo kernel settings: what no other file sets stays until the next start",
            "ansible.builtin.command": {"argv": ["sysctl", "--system"]},
            "changed_when": True,
            "tags": ["undo", "never"],
        }
    )
    return {
        "name": f"Fixes of loadstone audit on {host}",
        "hosts": host,
        "become": True,
        "gather_facts": False,
        "tasks": [*copies, *fixes, *undo],
    }


def _setting(result: RuleResult, setting: SettingChange, path: str | None) -> dict[str, Any]:
    option, value = setting.option, setting.value
    task: dict[str, Any] = {"name": f"{result.rule.id}: {option} = {value}"}
    if setting.where == "sysctl":
        task["ansible.posix.sysctl"] = {
            "name": option,
            "value": value,
            "sysctl_file": SYSCTL,
            "reload": True,
        }
    else:
        task["community.general.ini_file"] = {
            "path": path,
            "section": setting.section,
            "option": option,
            "value": value,
        }
    return {**task, "tags": ["fix", result.rule.id]}


def _by_hand(result: RuleResult) -> dict[str, Any]:
    fix = result.rule.fix
    return _message(result, "by hand", "\n".join(part for part in (fix.text, fix.lines) if part))


def _message(result: RuleResult, kind: str, text: str) -> dict[str, Any]:
    return {
        "name": f"{result.rule.id}: {kind}",
        "ansible.builtin.debug": {"msg": text},
        "tags": ["fix", result.rule.id],
    }


def _put_back(path: str, number: int) -> Iterator[dict[str, Any]]:
    """Put a file back and remove the copy, so that a later fix keeps the file as it is then."""
    copy, found = f"{path}{KEPT}", f"kept_{number}"
    if_kept = {"when": f"{found}.stat.exists"}
    yield {
        "name": f"undo: look for {copy}",
        "ansible.builtin.stat": {"path": copy},
        "register": found,
        "tags": ["undo", "never"],
    }
    yield {**_copy(copy, path, "undo"), **if_kept}
    yield {
        "name": f"undo: remove {copy}",
        "ansible.builtin.file": {"path": copy, "state": "absent"},
        "tags": ["undo", "never"],
        **if_kept,
    }


def _copy(source: str, target: str, tag: Literal["fix", "undo"]) -> dict[str, Any]:
    """Copy a file on the host; a fix keeps the oldest copy, which is the way back."""
    return {
        "name": f"{tag}: copy {source} to {target}",
        "ansible.builtin.copy": {
            "src": source,
            "dest": target,
            "remote_src": True,
            "force": tag == "undo",
            "mode": "preserve",
        },
        "tags": [tag] if tag == "fix" else [tag, "never"],
    }
