"""The lean servers that every generator is measured against: ours for http, nginx for https."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

import psutil

STARTED_WITHIN_S = 10.0
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "target/release/bench-target"
# One cipher suite, so that all generators pay for the same one.
NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        location / {{
            default_type application/json;
            return 201 "{body}";
        }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class LeanTarget:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]

    def end(self) -> int:
        """End it, and give the number of requests that it has answered."""
        answered, _ = self.process.communicate()
        return int(answered)


@contextlib.contextmanager
def lean_target(core: int) -> Iterator[int]:
    """Give the port of a server on a core of its own; it ends with the block."""
    with counting_target(core) as target:
        yield target.port
        require_core(target.process.pid, core)
        target.end()


@contextlib.contextmanager
def counting_target(core: int | None = None) -> Iterator[LeanTarget]:
    """Start a server that counts what it answers; it ends with the block, if not before."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "bench-target"]
    subprocess.run(build, check=True, cwd=ROOT)
    bound = [] if core is None else ["taskset", "-c", str(core)]
    with subprocess.Popen([*bound, PROGRAM], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        if core is not None:
            require_core(process.pid, core)
        yield LeanTarget(port, process)
        process.stdin.close()


def require_core(pid: int, core: int) -> None:
    """End the measurement unless every thread of the process is bound to that core alone."""
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        allowed = status.read_text().partition("Cpus_allowed_list:")[2].split()[0]
        if allowed != str(core):
            raise SystemExit(f"verify: a thread of the target may use cores {allowed}, not {core}")


@dataclass(frozen=True, slots=True)
class SecureTarget:
    """A running nginx, and the file of its certificate."""

    port: int
    ca_file: str


@contextlib.contextmanager
def secure_target(core: int) -> Iterator[SecureTarget]:
    """Start nginx with TLS on a core of its own; it ends with the block."""
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        cert = f"{folder}/cert.pem"
        words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        files = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        files += ["-keyout", f"{folder}/key.pem", "-out", cert]
        subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)
        settings = Path(folder) / "nginx.conf"
        settings.write_text(NGINX.format(folder=folder, port=port, body="x" * 1500))
        command = ["taskset", "-c", str(core), "nginx", "-c", str(settings), "-p", folder]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                _wait_for(port)
                for worker in psutil.Process(process.pid).children():
                    require_core(worker.pid, core)
                yield SecureTarget(port, cert)
            finally:
                process.terminate()


def _wait_for(port: int) -> None:
    until = time.monotonic() + STARTED_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise SystemExit("verify: nginx did not start") from None
            time.sleep(0.05)
        else:
            return
