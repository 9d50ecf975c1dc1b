"""Compares the CPU time of two equal Keystones that were started in turn, or at the same time.

    python -m verification.comparison.starts

Two labs with equal settings are started one after the other, or at the same time (as `compare`
starts them). Then single validations alternate between them in random order, and the CPU time of
each lab's processes is read around each. Prints the CPU time per validation of the second lab as a
multiple of the first's. Reads scheduler statistics with a resolution of nanoseconds (Linux).
"""

import contextlib
import http.client
import json
import math
import os
import random
import statistics
from collections.abc import Iterator
from urllib.parse import urlsplit

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from loadstone.compare import trimmed
from loadstone.compare.restart import TwoLabs
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings

NAMES = (f"verify-{os.getpid()}-a", f"verify-{os.getpid()}-b")
WARM_UP = 60  # validations of each
WAYS = {False: "one after the other", True: "at the same time"}


def start(name: str) -> Deployment:
    chosen = settings.read([("release", "30.0.0")])
    return deployment.up(name, chosen, lambda _: None, owned=True)


@contextlib.contextmanager
def started(*, together: bool) -> Iterator[tuple[Deployment, Deployment]]:
    """Start both; they are removed at the end."""
    with contextlib.ExitStack() as stack:
        for name in NAMES:
            stack.callback(deployment.down, name, purge=True)
            start(name)
        labs = [deployment.find(name) for name in NAMES]
        if together:
            TwoLabs((labs[0].folder, labs[1].folder)).restart(random.Random())
        yield deployment.find(NAMES[0]), deployment.find(NAMES[1])


def token_of(lab: Deployment) -> str:
    known = lab.environment_variables()
    domain = {"id": "default"}
    user = {"name": "admin", "domain": domain, "password": known["OS_PASSWORD"]}
    scope = {"project": {"name": "admin", "domain": domain}}
    identity = {"methods": ["password"], "password": {"user": user}}
    body = json.dumps({"auth": {"identity": identity, "scope": scope}})
    answer = request(lab, "POST", body, {"Content-Type": "application/json"})
    return answer.headers["X-Subject-Token"] or ""


def request(
    lab: Deployment, method: str, body: str | None, headers: dict[str, str]
) -> http.client.HTTPResponse:
    place = urlsplit(lab.url)
    connection = http.client.HTTPConnection(place.netloc)
    connection.request(method, f"{place.path}/auth/tokens", body, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{lab.name} answered {answer.status}")
    return answer


def cpu_ns(lab: Deployment) -> int:
    """Return the CPU time of a lab's processes so far."""
    total = 0
    for pid in lab.pids():
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
    return total


def ratio(labs: tuple[Deployment, Deployment], pairs: int) -> tuple[float, float]:
    """Return the CPU time per validation of the first, in seconds, and of the second to it."""
    tokens = [token_of(lab) for lab in labs]

    def validated_ns(side: int) -> int:
        before = cpu_ns(labs[side])
        headers = {"X-Auth-Token": tokens[side], "X-Subject-Token": tokens[side]}
        request(labs[side], "GET", None, headers)
        return cpu_ns(labs[side]) - before

    for _ in range(WARM_UP):
        validated_ns(0), validated_ns(1)
    found: list[list[int]] = [[], []]
    for _ in range(pairs):
        for side in random.sample((0, 1), 2):
            found[side].append(validated_ns(side))
    logs = np.log(np.array(found[1]) / np.array(found[0]))
    return statistics.median(found[0]) / 1e9, math.exp(trimmed.mean(logs))


@click.command(help=__doc__)
@click.option("--times", default=8, show_default=True, help="Starts of each kind.")
@click.option("--pairs", default=200, show_default=True, help="Validations of each lab.")
def main(times: int, pairs: int) -> None:
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(times):
        for together, known in found.items():
            with started(together=together) as labs:
                known.append(ratio(labs, pairs))
                print(f"{WAYS[together]}: {known[-1][1]:.4f}", flush=True)
    table = Table("started", "times", "CPU, first", "second / first", "mean", "deviation")
    for together, known in found.items():
        ratios = [one for _, one in known]
        cpu_s = statistics.median(one_s for one_s, _ in known)
        spread = statistics.stdev(ratios) if len(ratios) > 1 else math.nan
        table.add_row(
            WAYS[together],
            str(times),
            f"{1e3 * cpu_s:.0f} ms",
            f"{min(ratios):.3f} to {max(ratios):.3f}",
            f"{statistics.mean(ratios):.3f}",
            f"{100 * spread:.1f} %",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
