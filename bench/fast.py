"""Closed loop, as fast as it goes: CPU per request and throughput, beside other generators."""

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.figures import ratios, spread, table
from bench.generators import GENERATORS, SOURCES, Bout, Cost, missing
from bench.settings import Settings
from bench.target import lean_target, secure_target

CONNECTIONS = (16, 64)
HTTPS_NAMES = ["loadstone", "wrk"]


def http(settings: Settings) -> Iterator[str]:
    """All generators, against the lean target."""
    names = list(GENERATORS)
    yield from left_out(missing(names))
    with lean_target(settings.target_core) as port:
        bout = Bout(port, 0, settings.seconds, settings.core)
        yield from _sides(bout, [n for n in names if n not in missing(names)], settings.rounds)


def https(settings: Settings) -> Iterator[str]:
    """Loadstone and wrk, against nginx (TLS 1.3, AES-128-GCM, connections kept)."""
    absent = missing(["nginx", "openssl", "wrk"])
    yield from left_out(absent)
    if {"nginx", "openssl"} & set(absent):
        return
    with secure_target(settings.target_core) as target:
        bout = Bout(target.port, 0, settings.seconds, settings.core, "https", target.ca_file)
        yield from _sides(bout, [n for n in HTTPS_NAMES if n not in absent], settings.rounds)


def left_out(absent: Sequence[str]) -> Iterator[str]:
    """Name what is not installed, and how to get it."""
    for name in absent:
        yield f"{name} is not installed and left out (`{SOURCES[name]}`)."
    if absent:
        yield ""


def _sides(bout: Bout, names: list[str], rounds: int) -> Iterator[str]:
    for connections in CONNECTIONS:
        costs: dict[str, list[Cost]] = {name: [] for name in names}
        for number in range(rounds):
            for name in names:
                print(f"{bout.scheme} {connections} {number + 1} {name}", file=sys.stderr)
                costs[name].append(GENERATORS[name](replace(bout, connections=connections)))
        yield f"{connections} connections:"
        yield ""
        yield from table(_head("wrk" in names), [_row(name, costs) for name in names])
        yield ""


def _head(has_wrk: bool) -> list[str]:
    head = ["generator", "requests/s", "CPU µs/request", "peak RSS MB"]
    return [*head, "CPU, to wrk", "requests/s, to wrk"] if has_wrk else head


def _row(name: str, costs: dict[str, list[Cost]]) -> list[str]:
    own = costs[name]
    rates, cpus = [one.requests_per_s for one in own], [one.cpu_us for one in own]
    memory = statistics.median(one.peak_mb for one in own)
    row = [name, spread(rates, ",.0f"), spread(cpus), f"{memory:.0f}"]
    if reference := costs.get("wrk"):
        row.append(ratios(cpus, [one.cpu_us for one in reference]))
        row.append(ratios(rates, [one.requests_per_s for one in reference]))
    return row
