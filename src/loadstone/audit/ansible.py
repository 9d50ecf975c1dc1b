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
from loadstone.audit.transport import AT_ONCE, COLLECTOR, MOST_BYTES, Collected
from loadstone.errors import EnvironmentUnusable
from loadstone.interrupts import Interrupts

EXTRA = "--via ansible needs: pip install 'loadstone[ansible]'"
_ENDED = ("runner_on_ok", "runner_on_failed", "runner_on_unreachable")


def collect(inventory: Path, timeout_s: float, *, become: bool) -> tuple[Collected, ...]:
    """Run the collector on all hosts of an inventory; a host that fails costs only itself.

    Raises EnvironmentUnusable where Ansible is not installed, or cannot read the inventory.
    """
    try:
        import ansible_runner  # type: ignore[import-untyped]  # it has none
    except ImportError:
        raise EnvironmentUnusable(EXTRA) from None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if shutil.which("ansible", path=path) is None:
        raise EnvironmentUnusable(EXTRA)
    ended: dict[str, dict[str, Any]] = {}

    def keep(event: dict[str, Any]) -> bool:
        data = event.get("event_data", {})
        if event.get("event") in _ENDED and "host" in data:
            ended[str(data["host"])] = data.get("res", {})
        return False  # nothing is written down of it

    with (
        tempfile.TemporaryDirectory(prefix="loadstone-audit-") as folder,
        Interrupts() as interrupts,
    ):
        done = ansible_runner.run(
            private_data_dir=folder,
            inventory=str(inventory.absolute()),
            host_pattern="all",
            module="ansible.builtin.script",
            # The module's terminal would mix errors into the answer.
            module_args=f"{shlex.quote(str(COLLECTOR))} 2>/dev/null",
            cmdline=f"--task-timeout {timeout_s:.0f}{' --become' if become else ''}",
            envvars={"PATH": path, **_config()},
            forks=AT_ONCE,
            quiet=True,
            event_handler=keep,
            # Without it, ansible-runner sets handlers of its own, which stay when it has ended.
            cancel_callback=lambda: interrupts.count > 0,
        )
        said = (Path(folder) / "artifacts" / done.config.ident / "stdout").read_text()
    if interrupts.count:
        raise KeyboardInterrupt
    if not ended:
        raise EnvironmentUnusable(f"--via ansible: {inventory}: {_last_line(said)}")
    return tuple(_collected(host, result) for host, result in ended.items())


def _config() -> dict[str, str]:
    """Return where the user's ansible.cfg is: Ansible looks for it where it is started."""
    here = Path("ansible.cfg")
    if "ANSIBLE_CONFIG" in os.environ or not here.is_file():
        return {}
    return {"ANSIBLE_CONFIG": str(here.absolute())}


def _collected(host: str, result: dict[str, Any]) -> Collected:
    answer = str(result.get("stdout", ""))
    if len(answer) > MOST_BYTES:
        return Collected(host, failure=f"the answer is longer than {MOST_BYTES // 1_000_000} MB")
    try:
        return Collected(host, parse(answer))
    except UnreadableFacts as unreadable:
        said = result.get("stderr") or result.get("msg")
        return Collected(host, failure=_last_line(str(said)) if said else str(unreadable))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c for c in (lines or ["no host answered"])[-1] if c.isprintable())[:200]
