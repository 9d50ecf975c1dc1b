"""Runs one case of `CASES` in a network of its own, in which 198.51.100.7 is another machine.

Started under `unshare --net`. Prints as JSON how the command ended and what the other address saw.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from fake_cloud import FakeCloud
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

OTHER = "198.51.100.7"  # TEST-NET-2: nobody's
TASK = """
version: 2
title: beyond loopback
subtasks:
  - title: one
    scenario: {SCENARIO}
    runner: {constant: {times: 6, concurrency: 2}}
    contexts: {CONTEXTS}
"""
USERS = "users: {tenants: 1, users_per_tenant: 1}"
PLUGIN = """
import requests
from loadstone.rally.functions.plugin import scenario


@scenario("Tests.get")
def get(context, url: str):
    requests.get(url, timeout=10)
"""
# Scenario, contexts; OTHER and HERE stand for the URLs of the two servers.
CASES = {
    "http": ("HttpRequests.check_request: {url: OTHER/, method: GET, status_code: 200}", ""),
    "random http": (
        "HttpRequests.check_random_request: {requests: [{url: OTHER/}], status_code: 200}",
        "",
    ),
    "redirect, not followed": (
        "HttpRequests.check_request: {url: HERE/redirect, method: GET, status_code: 302}",
        "",
    ),
    "catalog": ("NovaServers.boot_server: {image: {id: i}, flavor: {id: f}}", USERS),
    "quotas": ("Dummy.openstack: {}", f"{USERS}, quotas: {{nova: {{cores: 5}}}}"),
    "function": ("Tests.get: {url: OTHER/}", ""),
    "function, by proxy": ("Tests.get: {url: OTHER/}", ""),
    "function, redirected": ("Tests.get: {url: HERE/redirect}", ""),
}


@dataclass
class Seen:
    """What reached the other address."""

    connections: int = 0
    requests: list[str] = field(default_factory=list)


class Identity(FakeKeystone):
    """A fake Keystone whose catalog names the other address, and which redirects to it."""

    other = ""

    def serve(self, request):
        if request.path == "/redirect":
            request.answer(302, None, (("Location", f"{self.other}/"),))
        else:
            super().serve(request)

    def issue(self, body):
        status, value, *headers = super().issue(body)
        if status == 201:
            value["token"]["catalog"] = FakeCloud().catalog(self.other)
        return status, value, *headers


class Elsewhere(FakeCloud):
    """Services on the other address."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.token_is_good = True
        self.seen = seen

    def answer(self, request, path, body):
        self.seen.requests.append(f"{request.command} {request.path}")
        if not path:
            return 200, {}
        if "os-quota-sets" in path:
            return 200, body
        return super().answer(request, path, body)


def counting(handler, seen: Seen):
    """Return a handler class that counts connections, too."""

    class Counting(handler):
        def setup(self):
            seen.connections += 1
            super().setup()

    return Counting


def main(case: str, home: Path, words: list[str]) -> None:
    for command in ("link set lo up", f"address add {OTHER}/32 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    seen = Seen()
    identity = Identity()
    elsewhere = counting(Elsewhere(seen).handler(), seen)
    with serving(elsewhere, host=OTHER) as identity.other, serving(identity.handler()) as here:
        ended = loadstone(case, home, (here, identity.other), words)
    print(json.dumps({"code": ended.returncode, "stderr": ended.stderr, **vars(seen)}))


def loadstone(
    case: str, home: Path, urls: tuple[str, str], words: list[str]
) -> "subprocess.CompletedProcess[str]":
    here, other = urls
    scenario, contexts = CASES[case]
    text = TASK.replace("SCENARIO", scenario).replace("CONTEXTS", contexts)
    (home / "task.yaml").write_text(text.replace("HERE", here).replace("OTHER", other))
    (home / "plugin.py").write_text(PLUGIN)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    proxies = {"http_proxy": here, "no_proxy": ""} if case == "function, by proxy" else {}
    return subprocess.run(
        [sys.executable, "-m", "loadstone", words[0], "--plugin", "plugin.py", *words[1:]],
        env=kept
        | proxies
        | {
            "LOADSTONE_HOME": str(home),
            "OS_AUTH_URL": f"{here}/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_ID": "default",
        },
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
