"""A real haproxy in front of a service, with rules of a test's own."""

import contextlib
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import requests
from lab_client import until

from loadstone.lab.parts.haproxy import HAPROXY
from loadstone.lab.ports import HOST, choose

CONF = """\
global
    maxconn 4096
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind {host}:{port}
{frontend}
    default_backend service
backend service
{backend}
    server one {host}:{service} {server}
"""
# A limit that counts every request, the refused ones too.
LIMITED = """\
stick-table type ip size 1k expire 1m store http_req_rate({window})
{condition}
acl is-counted var(txn.counted) -m bool
http-request track-sc0 src if is-counted
http-request deny deny_status 429 if is-counted {{ sc_http_req_rate(0) gt {most} }}
"""
EVERY = "http-request set-var(txn.counted) bool(true)"
ISSUES = (
    "http-request set-var(txn.counted) bool(true) if { method POST } { path -m end /auth/tokens }"
)


def limited(most: int, window: str, condition: str = EVERY) -> str:
    """Return a frontend that refuses what is more than `most` in a window with 429."""
    return LIMITED.format(window=window, condition=condition, most=most)


@contextlib.contextmanager
def haproxy(
    service: int, *, frontend: str = "", backend: str = "", server: str = ""
) -> Iterator[int]:
    """Start haproxy before the service on a local port; yield the port it listens on."""
    port = choose()
    text = CONF.format(
        host=HOST,
        port=port,
        service=service,
        frontend=textwrap.indent(frontend, "    "),
        backend=textwrap.indent(backend, "    "),
        server=server,
    )
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "haproxy.cfg"
        conf.write_text(text)
        process = subprocess.Popen((HAPROXY.path(), "-db", "-f", str(conf)))
        try:
            until(lambda: _answers(port), "haproxy did not start")
            yield port
        finally:
            process.terminate()
            process.wait(timeout=10)


def _answers(port: int) -> bool:
    try:
        requests.get(f"http://{HOST}:{port}/", timeout=5)
    except requests.ConnectionError:
        return False
    return True
