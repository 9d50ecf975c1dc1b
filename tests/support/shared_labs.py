"""Deployments that all tests of a session share, in whichever process of pytest-xdist they run.

Each belongs to a process of its own (`shared_lab_owner.py`), which the first test that needs the
deployment starts. The owner stops and removes the deployment once it gets the lock that the
session's first process holds (pytest itself, or the controller of xdist). The kernel releases that
lock however the process ends, so nothing stays behind.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.system import locks

SESSION = "session.lock"
UP = "up\n"
OWNER = Path(__file__).with_name("shared_lab_owner.py")
KEPT = ("environments", "templates", "sources")
# Settings of each; together they have every kind of part that Keystone needs.
LABS: dict[str, tuple[str, ...]] = {
    "plain": ("workers=2", "hash-rounds=4"),
    "balanced": (
        *("nodes=2", "workers=2", "database=mariadb", "storage=tmpfs", "hash-rounds=10"),
        *("cache=memcached-pool", "conf.cache.memcache_dead_retry=30"),
        "conf.cache.memcache_pool_connection_get_timeout=1",
        "conf.auth.methods=external,password,token,oauth1,mapped,application_credential,ec2credential,totp",
    ),
    "nginx": (
        *("web=nginx-uwsgi", "workers=1", "token=jws", "hash-rounds=4"),
        *("database=postgres", "storage=tmpfs", "identity=ldap"),
    ),
    "apache": ("web=apache", "workers=2", "cache=memory", "hash-rounds=4"),
}


def kept_home() -> Path:
    """Return the folder of what is made once on a machine: environments and prepared databases."""
    chosen = os.environ.get("LOADSTONE_TEST_HOME")
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "loadstone-tests"


def session_folder(config: pytest.Config) -> Path:
    """Return the folder that all processes of this session have in common."""
    own = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # as pytest-xdist
    return (own.parent if hasattr(config, "workerinput") else own) / "labs"


@contextlib.contextmanager
def session(folder: Path) -> Iterator[None]:
    """Let deployments be shared until this ends; then wait until all of them are gone."""
    with locks.held(folder / SESSION):
        yield
    for name in LABS:
        with locks.held(folder / f"{name}.owned"):
            pass


def home_of(folder: Path) -> Path:
    """Return the session's home: environments of the machine, deployments of its own."""
    home = folder / "home"
    with locks.held(folder / "home.lock"):
        if not home.exists():
            link_kept(home)
    return home


def link_kept(home: Path) -> None:
    """Make a home in which environments and prepared databases are the kept ones."""
    (home / "lab").mkdir(parents=True)
    for name in KEPT:
        kept = kept_home() / "lab" / name
        kept.mkdir(parents=True, exist_ok=True)
        (home / "lab" / name).symlink_to(kept)


@contextlib.contextmanager
def in_use(folder: Path, name: str, *, exclusively: bool) -> Iterator[Deployment]:
    """Lend the deployment `name`; exclusively to those who count or change what is in it."""
    started(folder, name)
    handle = os.open(folder / f"{name}.used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if exclusively else fcntl.LOCK_SH)
        yield deployment.find(name)
    finally:
        os.close(handle)


def started(folder: Path, name: str) -> None:
    """Start the deployment unless another process has."""
    with locks.held(folder / f"{name}.starting"):
        answer = folder / f"{name}.answer"
        if not answer.exists():
            answer.write_text(_start(folder, name, LABS[name]))
        if (text := answer.read_text()) != UP:
            raise EnvironmentUnusable(text or f"the owner of {name} ended: {folder}/{name}.log")


def _start(folder: Path, name: str, words: Sequence[str]) -> str:
    with (folder / f"{name}.log").open("w") as log:
        owner = subprocess.Popen(
            [sys.executable, str(OWNER), str(folder), name, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    owner.returncode = 0  # it outlives this process and is not waited for, which Popen warns of
    assert owner.stdout is not None
    with owner.stdout as stdout:
        return stdout.read()
