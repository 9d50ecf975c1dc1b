"""What `loadstone serve` can be told: options and their types."""

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import click

from loadstone.cli.duration import Number, Span

Command = Callable[..., object]


class Options(TypedDict):
    """What the command line says of the service."""

    host: str
    port: int
    threads: int
    user: str
    project: str
    token_life_s: float
    max_tokens: int
    capacity_rps: float | None
    workers: int
    law: str
    even_over: int
    stall_every_s: float
    stall_s: float
    halve_at_s: float | None
    queue: int | None
    only_errors: bool
    seed: int
    port_file: Path | None
    counts: Path | None
    until_stdin_closes: bool


def serve_options(command: Command) -> Command:
    """Add the options of the service."""
    file = click.Path(path_type=Path, dir_okay=False)
    law = click.Choice(["fixed", "exponential", "bursty"])
    options = (
        ("--host", "host", str, "127.0.0.1", "Address to listen on."),
        ("--port", "port", click.IntRange(0, 65535), 0, "0: a free one."),
        ("--threads", "threads", click.IntRange(1, 256), 1, "Threads that serve."),
        ("--user", "user", str, "admin", "The administrator's name."),
        ("--project", "project", str, "admin", "The administrator's project."),
        ("--token-life", "token_life_s", Span(), "1h", "How long a token lives."),
        ("--max-tokens", "max_tokens", click.IntRange(1), 1_000_000, "Kept; the oldest go first."),
        ("--capacity", "capacity_rps", Number(0.001, 1e6), None,
         "Token requests a second that it bears; else what the machine gives."),
        ("--workers", "workers", click.IntRange(1, 10_000), 2,
         "Token requests served at once; each takes workers / capacity seconds in the mean."),
        ("--law", "law", law, "fixed", "How service times vary (bursty: many short, a few long)."),
        ("--even-over", "even_over", click.IntRange(0, 100_000), 0,
         "Give every N service times in a row exactly the mean, so that the capacity holds over "
         "short stretches too; 0: chance alone."),
        ("--stall-every", "stall_every_s", Span(), "0s", "How often nothing begins for a while."),
        ("--stall", "stall_s", Span(), "0s", "For how long."),
        ("--halve-at", "halve_at_s", Span(), None, "From then on service takes twice as long."),
        ("--queue", "queue", click.IntRange(0), None, "That may wait; the next ones get 503."),
        ("--seed", "seed", click.IntRange(0), 1, "Of the service times."),
        ("--port-file", "port_file", file, None, "Where the port is written."),
        ("--counts", "counts", file, None, "Where is written at the end what was seen, as JSON."),
    )  # fmt: skip
    for flag, name, kind, default, words in reversed(options):
        add = click.option(flag, name, type=kind, default=default, show_default=True, help=words)
        command = add(command)
    words = "Answer token requests with 500."
    command = click.option("--only-errors", is_flag=True, help=words)(command)
    words = "End when standard input is closed, as it is when the parent dies."
    return click.option("--until-stdin-closes", is_flag=True, help=words)(command)
