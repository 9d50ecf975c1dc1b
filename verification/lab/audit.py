"""Time of `loadstone audit` for 8 hosts over ssh: `python -m verification.lab.audit`.

Each host is an sshd of its own on a loopback port with a keystone.conf of its own. What is timed is
the whole command, from its start to its exit, as a user types it. All hosts share this machine's
processors, which real ones would not. Ends with 1 where the slowest round took longer than
--most-s.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))

from ssh_hosts import is_installed, ssh_hosts, with_settings

PYTHON = "/usr/bin/python3"  # the system's: a developer's shim may take longer than the collector
CONF = "[cache]\nbackend = oslo_cache.memcache_pool\n[role]\ncaching = false\n"


def main() -> None:
    """Print the wall time of each round and the CPU time of this side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most-s", type=float, default=5.0)
    given = parser.parse_args()
    if not is_installed():
        sys.exit("verify: apt-get install openssh-server")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = {f"control{n}": _host(folder, n) for n in range(1, given.hosts + 1)}
        with ssh_hosts(folder, commands) as hosts:
            inventory = folder / "hosts.ini"
            inventory.write_text("[identity]\n" + "\n".join(hosts.names) + "\n")
            _audit(inventory, hosts.config)  # leaves the byte code that an installed package has
            rounds = [_audit(inventory, hosts.config) for _ in range(given.rounds)]
    times = sorted(wall_s for wall_s, _ in rounds)
    print(f"audit of {given.hosts} hosts over ssh, {os.cpu_count()} cores, {given.rounds} rounds:")
    print("  seconds: " + ", ".join(f"{one:.2f}" for one in times))
    print(f"  median {times[len(times) // 2]:.2f} s, at most {times[-1]:.2f} s")
    print(f"  CPU of the command and its ssh clients: {min(cpu for _, cpu in rounds):.2f} s")
    if times[-1] > given.most_s:
        sys.exit(f"verify: longer than {given.most_s:g} s")


def _host(folder: Path, number: int) -> str:
    """Return the command of a host with its own /etc."""
    etc = folder / f"etc{number}"
    (etc / "keystone").mkdir(parents=True)
    (etc / "keystone" / "keystone.conf").write_text(CONF)
    settings = {"AUDIT_ETC": str(etc), "AUDIT_NAME": f"control{number}", "AUDIT_PYTHON": PYTHON}
    return str(with_settings(settings))


def _audit(inventory: Path, config: Path) -> tuple[float, float]:
    """Audit all hosts once; return the wall and CPU seconds of the command."""
    options = ("--inventory", str(inventory), "--ssh-config", str(config), "--json", "-")
    before_s, began_s = _children_s(), time.monotonic()
    command = [sys.executable, "-m", "loadstone", "audit", *options]
    variables = {n: value for n, value in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    variables["PYTHONPYCACHEPREFIX"] = str(inventory.parent / "pycache")
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    wall_s, cpu_s = time.monotonic() - began_s, _children_s() - before_s
    tree = json.loads(done.stdout)
    failed = [host["name"] for host in tree["hosts"] if host["failure"]]
    found = sum(row["rule"] == "KS-02" and row["state"] == "fail" for row in tree["results"])
    if failed or found != len(tree["hosts"]):
        sys.exit(f"verify: {failed} gave no facts; {found} of {len(tree['hosts'])} findings")
    return wall_s, cpu_s


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
