"""A service of exactly known capacity, as a process of its own: `loadstone serve`."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests
from command_line import PASSWORD

from loadstone.plan.script import Step, text

NAME = "known"  # of its user and its project
_DOMAIN = {"id": "default"}
_AUTH = {
    "identity": {
        "methods": ["password"],
        "password": {"user": {"name": NAME, "domain": _DOMAIN, "password": PASSWORD}},
    },
    "scope": {"project": {"name": NAME, "domain": _DOMAIN}},
}
TOKEN_REQUEST = json.dumps({"auth": _AUTH})
ISSUE = Step(
    action="issue",
    method="POST",
    path=text("/v3/auth/tokens"),
    headers=(("Content-Type", text("application/json")),),
    body=text(TOKEN_REQUEST),
    expect_status=(201,),
)


@dataclass(frozen=True)
class Known:
    """A running service: where it is and what it sustains."""

    port: int
    capacity_rps: float
    process: subprocess.Popen[bytes]
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/v3"


def cloud_of(url: str) -> dict[str, Any]:
    """Return the entry of such a service in clouds.yaml."""
    auth = {
        "auth_url": url,
        "username": NAME,
        "password": PASSWORD,
        "project_name": NAME,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    return {"auth": auth, "identity_api_version": 3}


def seen_by(known: Known) -> dict[str, int]:
    """Return what the service has counted: requests that were worked on, refused, ..."""
    url = f"http://{known.host}:{known.port}/loadstone/counts"
    answer: dict[str, int] = requests.get(url, timeout=30).json()
    return answer


@contextlib.contextmanager
def known_service(
    workers: int = 2, service_s: float = 0.1, *more: str, host: str = "127.0.0.1"
) -> Iterator[Known]:
    """Start a service of capacity workers / service_s; it ends with the block, or with us."""
    capacity_rps = workers / service_s
    capacity = (f"--capacity={capacity_rps!r}", f"--workers={workers}")
    own = (f"--host={host}", f"--user={NAME}", f"--project={NAME}")
    with serving(*capacity, *own, *more) as (port, process):
        yield Known(port, capacity_rps, process, host)


@contextlib.contextmanager
def serving(
    *options: str, warnings: list[str] | None = None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Start `loadstone serve`, with PASSWORD as its administrator's; yield its port.

    What it has written to standard error at its end is added to `warnings`.
    """
    words = (sys.executable, "-m", "loadstone", "serve", "--until-stdin-closes", *options)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"LOADSTONE_SERVE_PASSWORD": PASSWORD},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().decode()
            if not url:
                errors.seek(0)
                raise RuntimeError(f"loadstone serve did not start: {errors.read().decode()}")
            yield int(url.rpartition(":")[2].partition("/")[0]), process
        finally:
            process.stdin.close()
            process.wait(timeout=10)
            process.stdout.close()
            if warnings is not None:
                errors.seek(0)
                warnings += errors.read().decode().splitlines()
