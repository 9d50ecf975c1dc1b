"""Commands on hosts: by ssh, or on this machine."""

import subprocess

from loadstone.errors import EnvironmentUnusable

HERE = "here"  # this machine, without ssh
PATIENCE_S = 120.0  # of one command
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--")


def carry_out(host: str, command: str) -> None:
    """Run a shell command over ssh, or here; raise EnvironmentUnusable if it fails."""
    argv = ("sh", "-c", command) if host == HERE else (*SSH, host, command)
    try:
        completed = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise EnvironmentUnusable(f"{host}: {command}: {problem}") from None
    if completed.returncode != 0:
        output = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
        why = output[-1] if output else "nothing was said"
        raise EnvironmentUnusable(f"{host}: {command} ended with {completed.returncode}: {why}")
