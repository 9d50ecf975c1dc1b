"""Runs the collector through Ansible: for sites that have only an inventory, with become and vault.

One ad-hoc call of Ansible's `script` module over all hosts. Connection, privileges and secrets are
those of the inventory and of the user's own ansible.cfg; hosts need no Python.
"""

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from loadstone.audit.document import UnreadableFacts, parse
from loadstone.audit.transport import AT_ONCE, COLLECTOR, MOST_BYTES, Collected, last_line
from loadstone.errors import EnvironmentUnusable
from loadstone.system.installation import pip_install
from loadstone.system.interrupts import Interrupts

_ENDED = ("runner_on_ok", "runner_on_failed", "runner_on_unreachable")


def collect(inventory: Path, timeout_s: float, *, become: bool) -> tuple[Collected, ...]:
    """Run the collector on all hosts of an inventory; a host that fails does not affect the others.

    Raises EnvironmentUnusable where Ansible is not installed, or cannot read the inventory.
    """
    try:
        import ansible_runner  # type: ignore[import-untyped]  # it has none
    except ImportError:
        raise _missing() from None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if shutil.which("ansible", path=path) is None:
        raise _missing()
    results: dict[str, dict[str, Any]] = {}

    def keep(event: dict[str, Any]) -> bool:
        data = event.get("event_data", {})
        if event.get("event") in _ENDED and "host" in data:
            results[str(data["host"])] = data.get("res", {})
        return False  # ansible-runner stores no event

    with (
        tempfile.TemporaryDirectory(prefix="loadstone-audit-") as folder,
        Interrupts() as interrupts,
    ):
        runner = ansible_runner.run(
            private_data_dir=folder,
            inventory=str(inventory.absolute()),
            host_pattern="all",
            module="ansible.builtin.script",
            # The module allocates a terminal, which would mix stderr into stdout.
            module_args=f"{shlex.quote(str(COLLECTOR))} 2>/dev/null",
            cmdline=f"--task-timeout {timeout_s:.0f}{' --become' if become else ''}",
            envvars={"PATH": path, **_config()},
            forks=AT_ONCE,
            quiet=True,
            event_handler=keep,
            # Without it, ansible-runner installs signal handlers, and leaves them installed.
            cancel_callback=lambda: interrupts.count > 0,
        )
        output = (Path(folder) / "artifacts" / runner.config.ident / "stdout").read_text()
    if interrupts.count:
        raise KeyboardInterrupt
    if not results:
        why = last_line(output) or "no host answered"
        raise EnvironmentUnusable(f"--via ansible: {inventory}: {why}")
    return tuple(_collected(host, result) for host, result in results.items())


def _config() -> dict[str, str]:
    """Return ANSIBLE_CONFIG for ./ansible.cfg: ansible-runner starts Ansible in another folder."""
    here = Path("ansible.cfg")
    if "ANSIBLE_CONFIG" in os.environ or not here.is_file():
        return {}
    return {"ANSIBLE_CONFIG": str(here.absolute())}


def _collected(host: str, result: dict[str, Any]) -> Collected:
    stdout = str(result.get("stdout", ""))
    if len(stdout) > MOST_BYTES:
        return Collected(host, failure=f"the answer is longer than {MOST_BYTES // 1_000_000} MB")
    try:
        return Collected(host, parse(stdout))
    except UnreadableFacts as unreadable:
        message = last_line(str(result.get("stderr") or result.get("msg") or ""))
        return Collected(host, failure=message or str(unreadable))


def _missing() -> EnvironmentUnusable:
    command = pip_install("ansible-core", "ansible-runner")
    return EnvironmentUnusable(f"--via ansible needs: {command}")
