"""Runs commands in a network of its own, and counts the packets that leave loopback.

Started under `unshare --net` with a folder as argument. Prints a JSON list of `Sent`.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import command_server
from command_line import environment
from known_service import NAME, cloud_of, serving

LINK, OTHER_END = "lsout0", "lsout1"
OUTSIDE = "198.51.100.7"  # TEST-NET-2: nobody's
FLAG = "--yes-load-this-target"
USERS = "contexts: {users: {tenants: 1, users_per_tenant: 1}}"
TASK = """
version: 2
title: packets
subtasks:
  - title: one
    scenario: {SCENARIO}
    runner: {constant: {times: 4, concurrency: 2}}
    CONTEXTS
"""
HTTP = "HttpRequests.check_request: {url: 'http://OUTSIDE/', method: GET, status_code: 200}"
INSIDE = (
    ("doctor",),
    ("task", "check", "task.yaml"),
    ("lab", "list"),
    ("study", "list"),
    ("monitor", "--for", "1s"),
    ("run", "task.yaml"),
    ("run", "task.yaml", "--fleet", "local:2"),
    ("capacity", "--scenario", "validate", "--budget", "8s", "--users", "2"),
    ("results", "list"),
    ("results", "show", "latest"),
    ("report", "latest", "-o", "page.html"),
    ("results", "export", "latest", "run.zip"),
)
OUT = (
    ("capacity", "--budget", "20s"),
    ("run", "task.yaml"),
    ("run", "http.yaml"),
    ("compare", "--cloud", "inside", "--cloud", "outside"),
    ("capacity", "--cloud", "outside"),
)


@dataclass(frozen=True)
class Sent:
    """Packets that a command sent beyond loopback."""

    words: Sequence[str]
    packets: int
    exit_code: int
    stderr: str


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def make_network() -> None:
    """Bring up loopback, and a link that swallows what the default route gives it."""
    ip("link", "set", "lo", "up")
    ip("link", "add", LINK, "type", "veth", "peer", "name", OTHER_END)
    for link in (LINK, OTHER_END):
        # Without it the kernel's own router solicitations would be counted.
        setting = Path(f"/proc/sys/net/ipv6/conf/{link}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")
        ip("link", "set", link, "up")
    ip("address", "add", "10.77.0.2/24", "dev", LINK)
    ip("neighbour", "add", "10.77.0.1", "lladdr", "02:00:00:00:00:01", "dev", LINK)
    ip("route", "add", "default", "via", "10.77.0.1", "dev", LINK)


def packets() -> int:
    """Return how many packets the link was given."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == LINK:
            return int(counters.split()[9])
    raise AssertionError(f"{LINK} is not there")


def sent_by(words: Sequence[str], env: dict[str, str], home: Path) -> Sent:
    before = packets()
    ended = command_server.run(words, env, home)
    return Sent(words, packets() - before, ended.returncode, ended.stderr)


def permitted(env: dict[str, str], home: Path) -> Sent:
    """Run a command with the flag until it has sent something."""
    before = packets()
    words = ("capacity", "--budget", "20s", FLAG)
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", *words],
        env=env,
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while packets() == before and process.poll() is None:
            time.sleep(0.05)
        sent = packets() - before
        process.kill()
    return Sent(words, sent, process.returncode, "")


def main() -> None:
    home = Path(sys.argv[1])
    make_network()
    tasks = {"task.yaml": ("Authenticate.keystone: {}", USERS), "http.yaml": (HTTP, "")}
    for name, (scenario, contexts) in tasks.items():
        text = TASK.replace("SCENARIO", scenario).replace("CONTEXTS", contexts)
        (home / name).write_text(text.replace("OUTSIDE", OUTSIDE))
    outside = environment(f"http://{OUTSIDE}:5000/v3", home)
    with serving(f"--user={NAME}", f"--project={NAME}") as (port, _):
        url = f"http://127.0.0.1:{port}/v3"
        clouds = {"inside": cloud_of(url), "outside": cloud_of(f"http://{OUTSIDE}:5000/v3")}
        (home / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
        found = {
            "inside": [sent_by(words, environment(url, home), home) for words in INSIDE],
            "outside": [
                sent_by(words, environment(url, home) if "http.yaml" in words else outside, home)
                for words in OUT
            ],
            "permitted": [permitted(outside, home)],
        }
    print(json.dumps({name: [asdict(one) for one in each] for name, each in found.items()}))


if __name__ == "__main__":
    main()
