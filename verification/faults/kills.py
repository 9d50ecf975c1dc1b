"""Kill task runs at random moments: is everything found again, and removed?

    python -m verification.faults.kills --times 20 --users 150

Starts a real Keystone (cheap password hashes; or, with `--serve`, `loadstone serve`) and, against
it, task runs with a users context, each of which is ended by SIGKILL, SIGTERM or SIGINT at a random
moment: as it starts, while users are made, under load, while users are removed. After each: no
process may be left, the store must be readable, and after `loadstone results clean` nothing of the
run may be left in Keystone. Ends with 1 when something was. The seed is printed; the same seed
chooses the same moments.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from loadstone.cloud import connect, from_environment
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind
from loadstone.lab import deployment
from loadstone.lab.keystone import settings

MARK = "LOADSTONE_BENCH_KILLS"  # in the environment of all that an attempt starts
STAGES = ("start", "making", "load", "cleaning")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# Sent by the engine; things made by iterations; Python functions in worker processes.
SCENARIOS = ("Authenticate.keystone", "KeystoneBasic.create_user", "Dummy.dummy")
LOAD_S = 2.0
PATIENCE_S = 1200.0
LOOKED_EVERY_S = 0.005
BY_SIGNAL = 128
TASK = """
{scenario}:
  - runner: {{type: constant_for_duration, duration: {load_s}, concurrency: {concurrency}}}
    context: {{users: {{tenants: 2, users_per_tenant: {per_tenant}}}}}
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which run is ended, how and when."""

    scenario: str
    users: int
    stage: str
    number: signal.Signals
    moment: float  # from 0, the stage's beginning, to 1, about its end

    def __str__(self) -> str:
        when = f"{self.stage} at {self.moment:.0%}"
        return f"{self.number.name:7}  {self.scenario:25}  {when:15}"


def attempts(times: int, users: int, seed: int) -> Iterator[Attempt]:
    """Draw them: every signal in every stage, once there are twelve of them."""
    draw = Random(seed)
    pairs = [(stage, number) for stage in STAGES for number in SIGNALS]
    for index in range(times):
        if index % len(pairs) == 0:
            draw.shuffle(pairs)
        stage, number = pairs[index % len(pairs)]
        yield Attempt(draw.choice(SCENARIOS), users, stage, number, draw.random())


def trouble(attempt: Attempt, variables: dict[str, str], folder: Path) -> list[str]:
    """Carry an attempt out in an empty folder; give what was not as it has to be."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell's job in the background; what it starts would not hear Ctrl-C either.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    mark = secrets.token_hex(8)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    environment = kept | variables | {MARK: mark}
    told = folder / "told"
    with told.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "loadstone", "run", "-", "--store", str(folder / "store")],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(_task(attempt).encode())
        process.stdin.close()
        try:
            _wait_for(attempt, process, folder)
            if attempt.number is signal.SIGINT:
                os.killpg(process.pid, attempt.number)  # as a terminal does
            else:
                process.send_signal(attempt.number)
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()
    has_begun = (folder / "store").exists()
    found = list(_wrong_end(attempt, code, told.read_text(), has_begun))
    if not _until(lambda: not _marked(mark), PATIENCE_S / 10):
        found.append(f"processes left: {_marked(mark)}")
    return found + list(_wrong_store(folder / "store", environment)) + list(_left(variables))


def _task(attempt: Attempt) -> str:
    return TASK.format(
        scenario=attempt.scenario,
        load_s=0.1 if attempt.stage == "cleaning" else LOAD_S,
        # SQLite allows one writer.
        concurrency=1 if attempt.scenario == "KeystoneBasic.create_user" else 4,
        per_tenant=attempt.users // 2,
    )


def _wait_for(attempt: Attempt, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Return at the attempt's moment, or when the run has ended."""
    if attempt.stage == "start":
        time.sleep(1.5 * attempt.moment)
        return
    event = {"making": "created", "load": "load", "cleaning": "removed"}[attempt.stage]
    wanted = 1 if attempt.stage == "load" else 1 + int(attempt.moment * (attempt.users - 1))

    def has_come() -> bool:
        if event == "load":
            return f"  {attempt.scenario} | " in (folder / "told").read_text()
        words = f'"event": "{event}", "kind": "user"'
        files = (folder / "store").glob("runs/*/created.jsonl")
        return sum(file.read_text().count(words) for file in files) >= wanted

    if not _until(lambda: has_come() or process.poll() is not None, PATIENCE_S):
        raise AssertionError((folder / "told").read_text())
    if attempt.stage == "load":
        time.sleep(LOAD_S * attempt.moment)


def _wrong_end(attempt: Attempt, code: int, told: str, has_begun: bool) -> Iterator[str]:
    if not has_begun and code == -attempt.number:
        return  # while Python still loaded the command: it ends as any Python program does
    wanted = -signal.SIGKILL if attempt.number is signal.SIGKILL else BY_SIGNAL + attempt.number
    # The clean-up may have ended just before the signal came.
    if code != wanted and not (code == 0 and attempt.stage == "cleaning"):
        yield f"ended with {code}: {told}"
    if "Traceback" in told:
        yield f"a traceback: {told}"


def _wrong_store(store: Path, environment: dict[str, str]) -> Iterator[str]:
    """Ask the store as a user would, and clean up; give what went wrong."""

    def ask(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "loadstone", "results", *words, "--store", str(store)]
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    if not store.exists():
        return  # the run was ended before it opened its store
    listed = ask("list", "--json", "-")
    if listed.returncode != 0:
        yield f"results list: {listed.stderr}"
        return
    # A run that was ended before it began is not in it.
    for run in json.loads(listed.stdout or "[]"):
        if run["status"] not in ("interrupted", "finished"):
            yield f"the store says {run['status']}"
        for words in (("show", run["run_id"]), ("clean", run["run_id"])):
            answer = ask(*words)
            if answer.returncode != 0:
                yield f"results {words[0]}: {answer.returncode} {answer.stdout}{answer.stderr}"


def _left(variables: dict[str, str]) -> Iterator[str]:
    """Name what the cloud still has of any run."""
    with connect(from_environment(variables)) as access:
        identity = Identity(access)
        for kind in (ResourceKind.USER, ResourceKind.PROJECT, ResourceKind.DOMAIN):
            names = [one.name for one in identity.find(kind) if one.name.startswith("loadstone-")]
            if names:
                yield f"{len(names)} left of kind {kind}: {', '.join(names[:3])}"


def _marked(mark: str) -> list[int]:
    """Give the processes that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def _until(holds: Callable[[], bool], patience_s: float) -> bool:
    end_s = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(LOOKED_EVERY_S)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m verification.faults.kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--users", type=int, default=150)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--serve", action="store_true", help="against loadstone serve")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    bad = 0
    with (reference if options.serve else keystone)() as variables:
        for number, attempt in enumerate(attempts(options.times, options.users, options.seed), 1):
            began_s = time.monotonic()
            with TemporaryDirectory() as folder:
                found = trouble(attempt, variables, Path(folder))
            bad += bool(found)
            took = f"{time.monotonic() - began_s:6.1f} s"
            print(f"{number:3}  {attempt}  {took}  {'; '.join(found) or 'clean'}", flush=True)
    print(f"{options.times} runs of {options.users} users ended, {bad} of them not clean")
    raise SystemExit(1 if bad else 0)


@contextmanager
def keystone() -> Iterator[dict[str, str]]:
    """Start a real one that ends with us; its OS_* variables."""
    # SQLite would have its eight writers wait for each other.
    chosen = [("workers", "2"), ("hash-rounds", "4"), ("database", "mariadb")]
    name = f"kills-{os.getpid()}"
    try:
        started = deployment.up(name, settings.read(chosen), print, owned=True)
        yield started.environment_variables()
    finally:
        deployment.down(name, purge=True)


@contextmanager
def reference() -> Iterator[dict[str, str]]:
    """Start `loadstone serve`, which ends with us; its OS_* variables."""
    password = secrets.token_hex(16)
    process = subprocess.Popen(
        [sys.executable, "-m", "loadstone", "serve", "--until-stdin-closes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"LOADSTONE_SERVE_PASSWORD": password},
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield {
            "OS_AUTH_URL": process.stdout.readline().strip().partition("=")[2],
            "OS_USERNAME": "admin",
            "OS_PASSWORD": password,
            "OS_PROJECT_NAME": "admin",
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
        }
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


if __name__ == "__main__":
    main()
