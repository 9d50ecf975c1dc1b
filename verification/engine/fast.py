"""Closed loop, as fast as it goes: CPU per request and throughput, beside other generators."""

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from verification.engine.builds import BUILDS
from verification.engine.figures import ratios, spread, table
from verification.engine.generators import GENERATORS, SOURCES, Bout, Cost, h2load, missing
from verification.engine.settings import Settings
from verification.engine.target import lean_target, secure_target

CONNECTIONS = (16, 64)
HTTPS_NAMES = [*BUILDS, "wrk"]
STREAMS = (16, 64)


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


def http2(settings: Settings) -> Iterator[str]:
    """Loadstone and h2load, against nginx over TLS: one connection, its streams the same."""
    absent = missing(["nginx", "openssl", "h2load"])
    yield from left_out(absent)
    if absent:
        return
    generators = {build: GENERATORS[build] for build in BUILDS} | {"h2load": h2load}
    with secure_target(settings.target_core) as target:
        bout = Bout(target.port, 0, settings.seconds, settings.core, "https", target.ca_file, "2")
        for streams in STREAMS:
            one = replace(bout, connections=streams, streams=streams)
            yield f"{streams} streams on one connection:"
            yield ""
            yield from _compared(one, generators, "h2load", settings.rounds)
            yield ""


def left_out(absent: Sequence[str]) -> Iterator[str]:
    """Name what is not installed, and how to get it."""
    for name in absent:
        yield f"{name} is not installed and left out (`{SOURCES[name]}`)."
    if absent:
        yield ""


def _sides(bout: Bout, names: list[str], rounds: int) -> Iterator[str]:
    generators = {name: GENERATORS[name] for name in names}
    for connections in CONNECTIONS:
        yield f"{connections} connections:"
        yield ""
        yield from _compared(replace(bout, connections=connections), generators, "wrk", rounds)
        yield ""


def _compared(
    bout: Bout, generators: dict[str, Callable[[Bout], Cost]], reference: str, rounds: int
) -> Iterator[str]:
    """Run each generator in every round, and yield the table."""
    costs: dict[str, list[Cost]] = {name: [] for name in generators}
    for number in range(rounds):
        for name, generator in generators.items():
            print(f"{bout.scheme} {bout.connections} {number + 1} {name}", file=sys.stderr)
            costs[name].append(generator(bout))
    head = ["generator", "requests/s", "CPU µs/request", "peak RSS MB"]
    if reference in generators:
        head += [f"CPU, to {reference}", f"requests/s, to {reference}"]
    yield from table(head, [_row(name, costs, reference) for name in generators])


def _row(name: str, costs: dict[str, list[Cost]], reference: str) -> list[str]:
    own = costs[name]
    rates, cpus = [one.requests_per_s for one in own], [one.cpu_us for one in own]
    memory = statistics.median(one.peak_mb for one in own)
    row = [name, spread(rates, ",.0f"), spread(cpus), f"{memory:.0f}"]
    if other := costs.get(reference):
        row.append(ratios(cpus, [one.cpu_us for one in other]))
        row.append(ratios(rates, [one.requests_per_s for one in other]))
    return row
