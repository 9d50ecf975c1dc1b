"""Runs commands in a network of its own, and counts the packets that leave loopback.

Started under `unshare --net` with a folder as argument. Prints a JSON list of `Sent`.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import command_server
from command_line import environment
from known_service import NAME, cloud_of, serving

LINK, OTHER_END = "lsout0", "lsout1"
OUTSIDE = "198.51.100.7"  # TEST-NET-2: nobody's
OUTSIDE_6 = "2001:db8::7"  # of the documentation's prefix: nobody's
ALL, IPV6 = 3, 0x86DD  # linux/if_ether.h: every protocol, and IPv6
OF_THE_KERNEL = (0, 58)  # what follows the IPv6 header: multicast listeners, neighbours (ICMPv6)
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
    ("capacity", "--scenario", "validate", "--budget", "20s", "--users", "2"),
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
    ("hit", f"http://{OUTSIDE}:5000/"),
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


class Link:
    """The way out; counts what is sent over IPv4 and IPv6, without the kernel's own packets."""

    def __init__(self) -> None:
        self._heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
        self._heard.bind((OTHER_END, 0))
        self._heard.setblocking(False)

    def packets(self) -> int:
        """Return how many packets came since the last call, as far as they fit in the buffer."""
        count = 0
        with suppress(BlockingIOError):
            while True:
                frame, (_, _, kind, *_) = self._heard.recvfrom(2048)
                is_from_here = kind != socket.PACKET_OUTGOING
                count += is_from_here and not _is_of_the_kernel(frame)
        return count


def _is_of_the_kernel(frame: bytes) -> bool:
    return int.from_bytes(frame[12:14]) == IPV6 and frame[20] in OF_THE_KERNEL


def make_network() -> Link:
    """Bring up loopback, and a link that swallows what the default routes give it."""
    ip("link", "set", "lo", "up")
    ip("link", "add", LINK, "type", "veth", "peer", "name", OTHER_END)
    for link in (LINK, OTHER_END):
        ip("link", "set", link, "up")
    for family, own, gateway in (
        ("-4", "10.77.0.2/24", "10.77.0.1"),
        ("-6", "fd77::2/64", "fd77::1"),
    ):
        nodad = ("nodad",) if family == "-6" else ()
        ip(family, "address", "add", own, "dev", LINK, *nodad)
        ip(family, "neighbour", "add", gateway, "lladdr", "02:00:00:00:00:01", "dev", LINK)
        ip(family, "route", "add", "default", "via", gateway, "dev", LINK)
    return Link()


def sent_by(link: Link, words: Sequence[str], env: dict[str, str], home: Path) -> Sent:
    link.packets()
    ended = command_server.run(words, env, home)
    return Sent(words, link.packets(), ended.returncode, ended.stderr)


def permitted(link: Link, env: dict[str, str], home: Path) -> Sent:
    """Run a command with the flag until it has sent something."""
    link.packets()
    sent = 0
    words = ("capacity", "--budget", "20s", FLAG)
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", *words],
        env=env,
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not sent and process.poll() is None:
            time.sleep(0.05)
            sent = link.packets()
        process.kill()
    return Sent(words, sent, process.returncode, "")


def main() -> None:
    home = Path(sys.argv[1])
    link = make_network()
    tasks = {
        "task.yaml": ("Authenticate.keystone: {}", USERS),
        "http.yaml": (HTTP, ""),
        "http6.yaml": (HTTP.replace("OUTSIDE", f"[{OUTSIDE_6}]"), ""),
    }
    for name, (scenario, contexts) in tasks.items():
        text = TASK.replace("SCENARIO", scenario).replace("CONTEXTS", contexts)
        (home / name).write_text(text.replace("OUTSIDE", OUTSIDE))
    outside, outside_6 = (
        environment(f"http://{host}:5000/v3", home) for host in (OUTSIDE, f"[{OUTSIDE_6}]")
    )
    options = (f"--user={NAME}", f"--project={NAME}")
    with serving(*options) as (port, _), serving(*options, "--host=::1") as (port_6, _):
        url, url_6 = f"http://127.0.0.1:{port}/v3", f"http://[::1]:{port_6}/v3"
        here = environment(url, home)
        clouds = {"inside": cloud_of(url), "outside": cloud_of(f"http://{OUTSIDE}:5000/v3")}
        (home / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
        inside = [(words, here) for words in INSIDE]
        inside.append((("run", "task.yaml"), environment(url_6, home)))
        inside.append((("hit", url, "--for", "1s"), here))
        inside += [(("capacity", "--dry-run"), other) for other in (outside, outside_6)]
        out = [(words, here if "http.yaml" in words else outside) for words in OUT]
        out += [(words, outside_6) for words in OUT[:2]]
        out.append((("run", "http6.yaml"), here))
        found = {
            "inside": [sent_by(link, words, env, home) for words, env in inside],
            "outside": [sent_by(link, words, env, home) for words, env in out],
            "permitted": [permitted(link, env, home) for env in (outside, outside_6)],
        }
    print(json.dumps({name: [asdict(one) for one in each] for name, each in found.items()}))


if __name__ == "__main__":
    main()
