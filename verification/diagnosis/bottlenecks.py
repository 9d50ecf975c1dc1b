"""Targets that are limited on purpose, and what is named first.

    python -m verification.diagnosis.bottlenecks

Each target is a lab deployment whose limit is known by construction. It is loaded several times;
the table tells how often which finding came first, beside the one that is right.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pymysql

from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings
from verification.diagnosis.quota import quota

TASK = """\
version: 2
title: {scenario}
subtasks:
  - title: {scenario}
    scenario: {{{scenario}: {{}}}}
    runner: {runner}
    contexts: {{users: {{tenants: 1, users_per_tenant: 2}}}}
"""
LOGIN = "Authenticate.keystone"
VALIDATE = "KeystoneBasic.authenticate_user_and_validate_token"
CREATE = "KeystoneBasic.create_user"
EXCHANGE = "federated-login"
# A shim for one server: while the file exists, what it writes takes longer to be on disk.
SLOW_DISK = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static void wait_for_disk(void) {{
    if (access("{switch}", F_OK) == 0) usleep({delay_us});
}}

int fsync(int file) {{
    wait_for_disk();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}}

int fdatasync(int file) {{
    wait_for_disk();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}}
"""
# What inserting a user costs the database beside its usual work: CPU and nothing else.
COSTLY_INSERT = (
    "CREATE TRIGGER costly BEFORE INSERT ON user FOR EACH ROW "
    "SET @cost = BENCHMARK(3000000, SHA1('x'))"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment whose limit is known, and the load that shows it."""

    right: str  # the finding that names the limit
    settings: tuple[str, ...]
    runner: str
    scenario: str = LOGIN
    options: tuple[str, ...] = ()
    fsync_ms: int = 0
    apache_threads: int | None = None
    change: Callable[[Deployment], contextlib.AbstractContextManager[None]] = field(
        default=lambda _: contextlib.nullcontext()
    )


def closed(concurrency: int, seconds: int = 10) -> str:
    """Return a runner: so many at once for so long."""
    return f"{{constant_for_duration: {{duration: {seconds}, concurrency: {concurrency}}}}}"


def database(running: Deployment) -> pymysql.Connection:
    """Return a connection to Keystone's own database, as Keystone has it."""
    url = r"mysql\+pymysql://(\w+):([^@\s]+)@([\d.]+):(\d+)/(\w+)"
    texts = [conf.read_text() for conf in running.folder.rglob("keystone.conf")]
    user, password, host, port, name = next(
        found.groups() for text in texts if (found := re.search(url, text))
    )
    return pymysql.connect(
        host=host, port=int(port), user=user, password=password, database=name, autocommit=True
    )


def processes(running: Deployment, name: str) -> Iterator[psutil.Process]:
    """Yield the processes of a deployment whose program has that name."""
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if one.environ().get("LOADSTONE_LAB") == str(running.folder) and name in one.name():
                yield one


@contextlib.contextmanager
def database_on_one_core(running: Deployment) -> Iterator[None]:
    """Give the database the last core, everything else the others; make an insert costly."""
    everything = os.sched_getaffinity(0)
    *others, last = sorted(everything)
    for one in processes(running, ""):
        cores = {last} if one.name().startswith("mariadbd") else set(others)
        for thread in one.threads():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, cores)
    with database(running) as link, link.cursor() as cursor:
        cursor.execute(COSTLY_INSERT)
    os.sched_setaffinity(0, others)  # and what loads it
    yield
    os.sched_setaffinity(0, everything)


def slow_provider(running: Deployment) -> contextlib.AbstractContextManager[None]:
    """Limit the identity provider, a Node process, to less CPU time than the load needs."""
    return quota([one.pid for one in processes(running, "node")], 0.03)


@contextlib.contextmanager
def busy_generator_core(_: Deployment) -> Iterator[None]:
    """Run a real-time program on the load generator's core: 50 ms of each second are left."""
    code = (
        "import os; os.sched_setaffinity(0, {0}); "
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\nwhile True: pass"
    )
    hog = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


TARGETS = {
    "Keystone's CPU": Target(
        "keystone-cpu",
        ("workers=2", "hash-rounds=12", "database=mariadb", "cache=memcached"),
        closed(6),
    ),
    "the database's CPU": Target(
        "database-cpu",
        ("workers=6", "hash-rounds=4", "database=mariadb"),
        closed(12, 15),
        CREATE,
        ("--generator-cores", "0"),
        change=database_on_one_core,
    ),
    "a slow disk": Target(
        "database-disk",
        ("workers=4", "hash-rounds=4", "database=mariadb"),
        closed(8),
        CREATE,
        fsync_ms=100,
    ),
    "the connection pool": Target(
        "keystone-pool",
        (
            *("workers=1", "threads=8", "hash-rounds=4", "database=mariadb"),
            *("conf.database.max_pool_size=1", "conf.database.max_overflow=0"),
        ),
        closed(12, 20),
        CREATE,
        fsync_ms=200,
    ),
    "one worker with many threads": Target(
        "keystone-gil",
        ("workers=1", "threads=16", "hash-rounds=4", "database=mariadb", "cache=memcached"),
        closed(16),
        VALIDATE,
    ),
    "the web server's threads": Target(
        "web-threads",
        ("workers=8", "web=apache", "hash-rounds=4", "database=mariadb"),
        closed(8),
        CREATE,
        fsync_ms=50,
        apache_threads=2,
    ),
    "the balancer's maxconn": Target(
        "balancer-maxconn",
        ("nodes=2", "workers=2", "maxconn=1", "database=mariadb"),
        closed(16),
    ),
    "no cache": Target(
        "keystone-cache-off",
        ("workers=2", "hash-rounds=4", "database=mariadb", "cache=off"),
        closed(8),
        VALIDATE,
    ),
    "the identity provider's CPU": Target(
        "provider-cpu",
        (
            *("workers=4", "web=apache", "database=mariadb", "cache=memcached"),
            "federation=oidc-provider",
        ),
        closed(8),
        EXCHANGE,
        change=slow_provider,
    ),
    "the load generator": Target(
        "load-generator",
        ("workers=1", "hash-rounds=4", "database=mariadb", "cache=memcached"),
        "{rps: {times: 100, rps: 10}}",
        options=("--generator-cores", "0"),
        change=busy_generator_core,
    ),
    "nothing": Target(
        "no-bottleneck",
        ("workers=4", "database=mariadb", "cache=memcached"),
        "{rps: {times: 10, rps: 1}}",
    ),
}


def named(target: Target, running: Deployment, folder: Path) -> tuple[str, str, float]:
    """Load it once; return the first finding, the sentence and the throughput per second."""
    task, found = folder / "task.yaml", folder / "found.json"
    task.write_text(TASK.format(runner=target.runner, scenario=target.scenario))
    command = [sys.executable, "-m", "loadstone", "run", str(task), "--lab", running.name]
    command += [*target.options, "--store", str(folder / "store"), "--json", str(found)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200)
    if not found.exists():
        raise SystemExit(ended.stderr)
    (workload,) = json.loads(found.read_text())["measurements"]
    found.unlink()
    uses = [f"{one['name']} {one['utilisation']:.0%}" for one in workload["resources"][:5]]
    said = f"{workload['bottleneck']['sentence']} [{', '.join(uses)}]"
    return workload["findings"][0]["id"], said, workload["trials"][0]["throughput_rps"]


@contextlib.contextmanager
def shims(target: Target, folder: Path) -> Iterator[None]:
    """Put programs before the real ones on the PATH: a slow disk, an Apache with few threads."""
    before, switch = os.environ["PATH"], folder / "slow"
    wrapped = {}
    if target.fsync_ms:
        source, library = folder / "slow_disk.c", folder / "slow_disk.so"
        source.write_text(SLOW_DISK.format(switch=switch, delay_us=target.fsync_ms * 1000))
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
        wrapped["mariadbd"] = f'LD_PRELOAD={library} exec {{real}} "$@"'
    if target.apache_threads:
        limits = {
            "ServerLimit": 1,
            "StartServers": 1,
            "ThreadsPerChild": target.apache_threads,
            "ThreadLimit": target.apache_threads,
            "MaxRequestWorkers": target.apache_threads,
        }
        words = " ".join(f"-C '{name} {value}'" for name, value in limits.items())
        wrapped["apache2"] = f'exec {{real}} "$@" {words}'
    programs = folder / "programs"
    programs.mkdir()
    for name, line in wrapped.items():
        real = shutil.which(name, path=f"{before}:/usr/sbin")
        (programs / name).write_text(f"#!/bin/sh\n{line.format(real=real)}\n")
        (programs / name).chmod(0o755)
    os.environ["PATH"] = f"{programs}:{before}"
    folder.chmod(0o755)  # servers that run as nobody start from here
    try:
        yield
    finally:
        os.environ["PATH"] = before


def rounds(name: str, times: int) -> Iterator[tuple[str, str, float]]:
    """Start a target and yield what is named each time; the target is gone afterwards."""
    target, lab = TARGETS[name], f"verify-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="bottlenecks-") as root:
        folder = Path(root)
        with shims(target, folder):
            running = deployment.up(
                lab, settings.read(map(settings.split, target.settings)), lambda _: None, owned=True
            )
        try:
            if target.fsync_ms:
                (folder / "slow").touch()
            with target.change(running):
                for _ in range(times):
                    yield named(target, running, folder)
        finally:
            (folder / "slow").unlink(missing_ok=True)
            deployment.down(lab, purge=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--target", choices=list(TARGETS), action="append", help="repeat")
    options = parser.parse_args()
    print("| limited by | right finding | named first | throughput per second |")
    print("|---|---|---|---|")
    for name in options.target or TARGETS:
        counts: collections.Counter[str] = collections.Counter()
        began_s, rates = time.monotonic(), []
        for first, sentence, rate_rps in rounds(name, options.times):
            counts[first] += 1
            rates.append(rate_rps)
            print(f"  {first}: {sentence} ({rate_rps:.3g}/s)", file=sys.stderr, flush=True)
        right = TARGETS[name].right
        shown = ", ".join(f"`{key}` {count}" for key, count in counts.most_common())
        span = f"{min(rates):.3g} to {max(rates):.3g}"
        print(
            f"| {name} | `{right}`: {counts[right]} of {options.times} | {shown} | {span} |",
            flush=True,
        )
        print(f"  {time.monotonic() - began_s:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
