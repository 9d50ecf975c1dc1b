"""Cost of a fleet, and how its load agrees with one machine's.

    python -m verification.fleet.cost PART

    agreement   N found by 4 processes and by one, on a service of known capacity, in turn
    counts      sent = recorded = seen by the target, over so many requests from 4 parts
    requests    CPU of a request on a worker, and on this machine without a fleet, in turn
    samples     what a sample costs on the wire, and the client
    start       from the order to the first request, on a fleet of 4 and on this machine, in turn
    idle        CPU of a worker that waits, with Dask's own settings and with ours
    scheduler   CPU of a scheduler with so many workers that send nothing

Prints rows of Markdown. All load goes to a service on this machine. With --namespaces the four
processes of `agreement` and `counts` have networks of their own, behind a bridge (root).
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import pickle
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import DEVNULL

import psutil

from loadstone.engine import local
from loadstone.engine.fleet import certificates, client, connect, daemons, dask_settings
from loadstone.engine.fleet.address import FleetAddress, LocalFleet, SchedulerAddress
from loadstone.engine.fleet.host_process import worker_options
from loadstone.plan.load import ClosedLoad, Load, OpenLoad
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import CommandLine
from known_service import ISSUE, NAME, known_service, serving
from network_hosts import HERE, network
from reserved_port import reserve_port

LIMITS = Limits(max_rate_rps=1e6, load_s=3600.0)
PARTS = 4


def plan_of(host: str, port: int, load: Load) -> Plan:
    limits = replace(LIMITS, loopback_only=False)
    return Plan(Origin("http", host, port), (ISSUE,), load, limits=limits)


@dataclass(frozen=True)
class Hosts:
    """The hosts that load, and the address at which they reach the service."""

    fleet: FleetAddress
    options: tuple[str, ...]  # the same for the command line
    service_host: str


@contextlib.contextmanager
def four_hosts(*, in_namespaces: bool) -> Iterator[Hosts]:
    if not in_namespaces:
        yield Hosts(LocalFleet(PARTS), (f"--fleet=local:{PARTS}",), "127.0.0.1")
        return
    with tempfile.TemporaryDirectory() as name, network(PARTS) as hosts:
        folder, port = Path(name), reserve_port()
        address = SchedulerAddress(f"tls://{HERE}:{port}", folder)
        certificates.make(folder)
        try:
            daemons.start_scheduler(folder, HERE, port)
            for host in hosts:
                daemons.start_workers(address, 1, host.command())
            options = (f"--fleet={address.url}", f"--fleet-certificates={folder}")
            yield Hosts(address, options, HERE)
        finally:
            daemons.end(folder)


def agreement(searches: int, hosts: Hosts) -> None:
    """Search with one process and with four; say whether each N lies in the other's interval."""
    print(f"| search | capacity | one: low, N, high | {PARTS} processes | agree | hold the truth |")
    print("| --- | --- | --- | --- | --- | --- |")
    agreed = 0
    for number in range(1, searches + 1):
        with (
            tempfile.TemporaryDirectory() as folder,
            known_service(4, 0.02, host=hosts.service_host) as known,
        ):
            command = CommandLine(Path(folder))
            for options in ((), hosts.options):
                words = ("capacity", "--scenario=issue", "--users=4", "--budget=40")
                more = ("--yes-load-this-target", *options)
                done = command(*words, *more, url=known.url, before=("env",))
                if done.returncode not in (0, 4):
                    raise SystemExit(done.stderr)
            with Store.open(Path(folder) / "results") as store:
                runs = [store.get(one.run_id) for one in reversed(store.every())]
            found = [one.measurements[-1].capacity for one in runs]
        intervals = [
            (None, None, None) if one is None else (one.low_rps, one.rate_rps, one.high_rps)
            for one in found
        ]
        agree = overlap(*intervals)
        agreed += agree
        shown = [
            " ".join("none" if one is None else f"{one:.1f}" for one in interval)
            for interval in intervals
        ]
        truths = [
            "yes" if low and high and low <= known.capacity_rps <= high else "no"
            for low, _, high in intervals
        ]
        row = (number, f"{known.capacity_rps:g}/s", *shown, "yes" if agree else "no")
        print(f"| {' | '.join(map(str, row))} | {', '.join(truths)} |", flush=True)
    print(f"\n{agreed} of {searches} agree.")


def overlap(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Return whether each N lies in the interval of the other search."""
    (low, n, high), (low_2, n_2, high_2) = one, other
    if None in (low, n, high, low_2, n_2, high_2):
        return False
    return low <= n_2 <= high and low_2 <= n <= high_2  # type: ignore[operator]


def counts(requests: int, hosts: Hosts) -> None:
    """Send closed loops from four parts until there were so many requests."""
    sent = recorded = 0
    with tempfile.TemporaryDirectory() as name:
        counted, path = Path(name) / "counts.json", Path(name) / "samples.parquet"
        options = (f"--host={hosts.service_host}", f"--user={NAME}", f"--project={NAME}")
        with (
            serving(*options, f"--counts={counted}") as (port, _),
            connect.opened(hosts.fleet) as fleet,
        ):
            began_s = time.monotonic()
            while sent < requests:
                load = ClosedLoad(4 * PARTS, iterations=min(500_000, requests - sent))
                found = fleet.run_to_file(plan_of(hosts.service_host, port, load), path)
                iterations = set()
                for rows in found.file.groups():
                    iterations.update(rows.iteration.tolist())
                if len(iterations) != found.file.rows:
                    raise SystemExit("an iteration is recorded twice")
                sent += load.iterations or 0
                recorded += found.file.rows
            spent_s = time.monotonic() - began_s
        seen = json.loads(counted.read_text())["requests"]["POST /v3/auth/tokens"]
    print("| asked for | recorded | seen by the target | seconds |\n| --- | --- | --- | --- |")
    print(f"| {sent:,} | {recorded:,} | {seen:,} | {spent_s:.0f} |")


def per_request(rounds: int) -> None:
    """Compare CPU of a request: the engine's threads, as each engine says itself."""
    with (
        serving(f"--user={NAME}", f"--project={NAME}") as (port, _),
        connect.opened(LocalFleet(1)) as one,
        connect.opened(LocalFleet(PARTS)) as fleet,
    ):
        runs: dict[str, Callable[[Plan], local.LoadResult]] = {
            "this machine": local.run,
            "fleet of 1": one.run,
            f"fleet of {PARTS}": fleet.run,
        }
        us: dict[str, list[float]] = {name: [] for name in runs}
        plan = plan_of("127.0.0.1", port, ClosedLoad(16, iterations=40_000))
        for _ in range(rounds):
            for name, run in runs.items():
                found = run(plan)
                us[name].append(1e6 * found.health.cpu_s / len(found.samples))
    print("| load from | CPU of a request, us: median | least | most |\n| --- | --- | --- | --- |")
    for name, values in us.items():
        print(f"| {name} | {statistics.median(values):.1f} | {min(values):.1f} | "
              f"{max(values):.1f} |")  # fmt: skip


def samples(requests: int) -> None:
    """Load from four parts, and count bytes and the client's CPU per sample."""
    me = psutil.Process()
    with (
        serving(f"--user={NAME}", f"--project={NAME}") as (port, _),
        connect.opened(LocalFleet(PARTS)) as fleet,
        tempfile.TemporaryDirectory() as folder,
    ):
        few = fleet.run(plan_of("127.0.0.1", port, ClosedLoad(4 * PARTS, iterations=20_000)))
        wire_bytes = len(pickle.dumps(few.samples, protocol=5)) / len(few.samples)
        path, before_s = Path(folder) / "samples.parquet", used_s(me)
        load = ClosedLoad(4 * PARTS, iterations=requests)
        found = fleet.run_to_file(plan_of("127.0.0.1", port, load), path)
        rows = found.file.rows
        cpu_us = 1e6 * (used_s(me) - before_s) / rows
        disk_bytes = path.stat().st_size / rows
    print("| samples | bytes of each on the wire | on the client's disk | client's CPU of each |\n"
          "| --- | --- | --- | --- |")  # fmt: skip
    print(f"| {rows:,} | {wire_bytes:.0f} | {disk_bytes:.0f} | {cpu_us:.2f} us |")


class FirstRequest:
    """A server that notes when the first byte of a request comes."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self.listener.getsockname()[1]
        self.at_s = 0.0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            link, _ = self.listener.accept()
            threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError), link:
            while link.recv(65536):
                self.at_s = self.at_s or time.monotonic()
                link.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")


def start(rounds: int) -> None:
    """Compare the time from the order to the first request."""
    target = FirstRequest()
    ms: dict[str, list[float]] = {"this machine": [], f"fleet of {PARTS}": []}
    plan = plan_of("127.0.0.1", target.port, OpenLoad(20.0, 0.5))
    with connect.opened(LocalFleet(PARTS)) as fleet:
        runs: dict[str, Callable[[Plan], object]] = {
            "this machine": local.run,
            f"fleet of {PARTS}": fleet.run,
        }
        for _ in range(rounds):
            for name, run in runs.items():
                target.at_s = 0.0
                began_s = time.monotonic()
                run(plan)
                ms[name].append(1000 * (target.at_s - began_s))
    print("| load from | first request after, ms: median | most |\n| --- | --- | --- |")
    for name, values in ms.items():
        print(f"| {name} | {statistics.median(values):.0f} | {max(values):.0f} |")
    alone, together = (statistics.median(one) for one in ms.values())
    print(f"\nA fleet of {PARTS} starts {together - alone:.0f} ms later (median).")


def used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def idle(seconds: float) -> None:
    """Let two workers wait side by side, one with Dask's own settings."""
    print("| worker that waits | CPU |\n| --- | --- |")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, port = Path(name), reserve_port()
        certificates.make(folder)
        daemons.start_scheduler(folder, "127.0.0.1", port)
        stack.callback(daemons.end, folder)
        address = SchedulerAddress(f"tls://127.0.0.1:{port}", folder)
        environments = {"Dask's settings": {}, "our settings": dask_settings.environment()}
        workers = {}
        for label, environment in environments.items():
            command = worker_options(address.url, label, "load", folder)
            worker = subprocess.Popen(command, env=os.environ | environment, stderr=DEVNULL)
            stack.callback(worker.wait)
            stack.callback(worker.terminate)
            workers[label] = psutil.Process(worker.pid)
        while len(client.joined(address)) < len(workers):
            time.sleep(0.5)
        time.sleep(5)
        before_s = {label: used_s(process) for label, process in workers.items()}
        time.sleep(seconds)
        for label, process in workers.items():
            print(f"| {label} | {(used_s(process) - before_s[label]) / seconds:.2%} of a core |")


class IdleMember:
    """Answers as a member does, and sends nothing."""

    def now_ns(self) -> int:
        return time.time_ns()


def scheduler_cost(workers: int, seconds: float) -> None:
    """Have workers in one process look alive, and ask each as a load does."""
    print("| workers | scheduler's CPU: connected | asked 5 times a second | memory | "
          "client's CPU a host and second |\n| --- | --- | --- | --- | --- |")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificates.make(folder)
        port = reserve_port()
        daemons.start_scheduler(folder, "127.0.0.1", port)
        [scheduler] = [
            one.process() for one in daemons.running(folder) if one.name == daemons.SCHEDULER
        ]
        if scheduler is None:
            raise SystemExit("the scheduler ended")
        address = SchedulerAddress(f"tls://127.0.0.1:{port}", folder)
        words = (
            sys.executable,
            "-m",
            "verification.fleet.cost",
            "workers",
            address.url,
            name,
            str(workers),
        )
        with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
            try:
                asked(address, workers, seconds, scheduler)
            finally:
                process.terminate()
        daemons.end(folder)


def asked(
    address: SchedulerAddress, workers: int, seconds: float, scheduler: psutil.Process
) -> None:
    until_s = time.monotonic() + 120
    with client.opened(address) as dask:
        while len(client.workers(dask)) < workers:
            if time.monotonic() > until_s:
                raise SystemExit("the workers did not join")
            time.sleep(0.5)
        started = [client.start_actor(dask, one, IdleMember) for one in client.workers(dask)]
        members = [one.member() for one in started]
        time.sleep(5)
        cpu, began_s = used_s(scheduler), time.monotonic()
        time.sleep(seconds)
        idle = (used_s(scheduler) - cpu) / (time.monotonic() - began_s)
        cpu, own, began_s, looks = used_s(scheduler), time.thread_time(), time.monotonic(), 0
        me = psutil.Process()
        own = used_s(me)
        while time.monotonic() < began_s + seconds:
            due_s = time.monotonic() + 0.2
            for answer in [one.now_ns() for one in members]:
                answer.result(timeout=30)
            looks += 1
            time.sleep(max(0.0, due_s - time.monotonic()))
        spent_s = time.monotonic() - began_s
        busy = (used_s(scheduler) - cpu) / spent_s
        each_ms = 1000 * (used_s(me) - own) / (looks * workers) * 5
        memory_mb = scheduler.memory_info().rss / 2**20
        print(f"| {workers} | {idle:.1%} of a core | {busy:.1%} | {memory_mb:.0f} MB | "
              f"{each_ms:.2f} ms ({looks / spent_s:.1f} looks/s) |")  # fmt: skip


def be_workers(url: str, folder: Path, count: int) -> None:
    """Be so many workers, in this process, until it is ended."""
    from distributed import Security, Worker

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    security = Security(
        tls_ca_file=str(folder / "ca.pem"),
        tls_worker_cert=str(folder / "certificate.pem"),
        tls_worker_key=str(folder / "key.pem"),
        tls_client_cert=str(folder / "certificate.pem"),
        tls_client_key=str(folder / "key.pem"),
        require_encryption=True,
    )

    async def live() -> None:
        workers = [
            Worker(url, nthreads=1, security=security, resources={"load": 1}, dashboard=False,
                   local_directory=str(folder / "spill"))
            for _ in range(count)
        ]  # fmt: skip
        for number in range(0, count, 10):
            await asyncio.gather(*workers[number : number + 10])
        await asyncio.gather(*(one.finished() for one in workers))

    asyncio.run(live())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--requests", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=100)
    options = parser.parse_args()
    match options.part:
        case "agreement":
            with four_hosts(in_namespaces=options.namespaces) as hosts:
                agreement(options.searches, hosts)
        case "counts":
            with four_hosts(in_namespaces=options.namespaces) as hosts:
                counts(options.requests, hosts)
        case "requests":
            per_request(options.rounds)
        case "samples":
            samples(options.requests)
        case "start":
            start(options.rounds)
        case "idle":
            idle(options.seconds)
        case "scheduler":
            scheduler_cost(options.workers, options.seconds)
        case "workers":
            url, folder, count = options.rest
            be_workers(url, Path(folder), int(count))
        case _:
            parser.error(f"no part {options.part!r}")


if __name__ == "__main__":
    main()
