"""Commands on hosts: by ssh, or on this machine."""

import subprocess

from loadstone.errors import EnvironmentUnusable

HERE = "here"  # this machine, without ssh
PATIENCE_S = 120.0  # of one command
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--")


def carry_out(host: str, command: str) -> None:
    """Run a command by ssh, or here by a shell; EnvironmentUnusable says why it failed."""
    words = ("sh", "-c", command) if host == HERE else (*SSH, host, command)
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise EnvironmentUnusable(f"{host}: {command}: {problem}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = said[-1] if said else "nothing was said"
        raise EnvironmentUnusable(f"{host}: {command} ended with {done.returncode}: {why}")
