"""`loadstone serve`: an in-memory token service, optionally with a known capacity."""

import json
import os
import secrets
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click
from click.core import ParameterSource

from loadstone.cli.choose import added, option_table
from loadstone.cli.duration import Number, RateRange, ShareParam, Span
from loadstone.cli.shell import unset
from loadstone.cli.stored import OutputFile, write
from loadstone.errors import InvalidInput
from loadstone.serve import service

PASSWORD = "LOADSTONE_SERVE_PASSWORD"  # noqa: S105 (the name of a variable)
CLIENT_SECRET = "LOADSTONE_OIDC_CLIENT_SECRET"  # noqa: S105 (the name of a variable)
OIDC_USERS = 50  # written to a file that does not exist yet
# Options of the queue, which exists only with --capacity.
OF_CAPACITY = (
    "workers",
    "law",
    "even_over",
    "stall_every_s",
    "stall_s",
    "halve_at_s",
    "decline",
    "collapse_above",
    "max_queue",
    "queue_timeout_s",
    "seed",
)
# Options that depend on another one, with the reason.
DEPENDENT = {
    "capacity_rps": (OF_CAPACITY, "without it nothing queues"),
    "limit_rps": (("burst_s", "limit_mode", "limit_per"), "without it nothing is limited"),
    "stall_s": (("stall_every_s",), "without it nothing stalls"),
    "collapse_above": (("collapse_by",), "without it nothing collapses"),
    "lockout_after": (("lockout_s",), "without it nobody is locked out"),
    "max_connections": (("over_connections",), "without it no connection is too many"),
    "has_oidc": (("oidc_users", "client_id", "redirect_uri"), "without it nobody asks for them"),
}


class ServeOptions(TypedDict):
    """The values of the options."""

    host: str
    port: int
    threads: int
    user: str
    project: str
    token_life_s: float
    max_tokens: int
    idle_timeout_s: float
    capacity_rps: float | None
    workers: int
    law: str
    even_over: int
    stall_every_s: float
    stall_s: float
    halve_at_s: float | None
    decline: float
    collapse_above: int | None
    collapse_by: float
    max_queue: int | None
    queue_timeout_s: float | None
    limit_rps: float | None
    burst_s: float
    limit_mode: str
    limit_per: str
    lockout_after: int | None
    lockout_s: float
    max_connections: int | None
    over_connections: str
    has_oidc: bool
    oidc_users: Path | None
    client_id: str
    redirect_uri: str
    only_errors: bool
    error_share: float
    script: Path | None
    seed: int
    port_file: Path | None
    counts: Path | None
    until_stdin_closes: bool


_OVER = click.Choice(["refuse", "reset", "wait"])
# Of the service.
serve_options = added(
    click.option(
        "--until-stdin-closes",
        is_flag=True,
        help="Exit when standard input is closed, as happens when the parent process dies.",
    ),
    click.option(
        "--only-errors", is_flag=True, help="Answer every token request with 500."
    ),
    click.option(
        "--oidc",
        "has_oidc",
        is_flag=True,
        help="Also serve OpenID Connect: one client, whose secret is generated unless "
        f"{CLIENT_SECRET} is set.",
    ),
    option_table(
        ("--host", "host", str, "127.0.0.1", "Address to listen on."),
        ("--port", "port", click.IntRange(0, 65535), 0, "Port to listen on; 0: a free one."),
        ("--threads", "threads", click.IntRange(1, 256), 1, "Threads that handle requests."),
        ("--user", "user", str, "admin", "Name of the administrator."),
        ("--project", "project", str, "admin", "Project of the administrator."),
        ("--token-life", "token_life_s", Span(), "1h", "Lifetime of a token."),
        ("--max-tokens", "max_tokens", click.IntRange(1, 10_000_000), 1_000_000,
         "Maximum number of valid tokens. Beyond that, the token that expires first is dropped."),
        ("--idle-timeout", "idle_timeout_s", Span(), "75s",
         "Close a connection on which no request has completed for this time."),
        ("--capacity", "capacity_rps", RateRange(0.001, 1e6), None,
         "Token requests per second that the service sustains. Default: no limit."),
        ("--workers", "workers", click.IntRange(1, 10_000), 2,
         "Token requests served at once. Each takes workers / capacity seconds on average."),
        ("--law", "law", click.Choice(["fixed", "exponential", "bursty"]), "fixed",
         "Distribution of service times (bursty: many short, a few long)."),
        ("--even-over", "even_over", click.IntRange(0, 100_000), 0,
         "Make every N consecutive service times average exactly to the mean, so that the capacity "
         "holds over short periods too. 0: purely random."),
        ("--stall-every", "stall_every_s", Span(), "0s",
         "Interval between stalls, in which no request starts."),
        ("--stall", "stall_s", Span(), "0s", "Duration of each stall."),
        ("--halve-at", "halve_at_s", Span(), None,
         "Halve the capacity at this time after the start."),
        ("--decline", "decline", ShareParam(least=0.0), "0%",
         "Share by which every 1,000 token requests lengthen the service of the next ones."),
        ("--collapse-above", "collapse_above", click.IntRange(1, 1_000_000), None,
         "Congestion collapse: a token request that arrives when more than this number are in the "
         "service, itself included, takes --collapse-by times as long."),
        ("--collapse-by", "collapse_by", Number(1, 1000), 2.0,
         "Factor of a congestion collapse."),
        ("--max-queue", "max_queue", click.IntRange(0, 1_000_000), None,
         "Maximum number of token requests that wait for a worker. Further ones get 503."),
        ("--queue-timeout", "queue_timeout_s", Span(), None,
         "Answer 503 to a token request that has waited this long for a worker."),
        ("--limit", "limit_rps", RateRange(0.001, 1e6), None,
         "Token requests per second that a rate limiter (token bucket) accepts. Further ones get "
         "429 and Retry-After."),
        ("--burst", "burst_s", Span(), "1s",
         "Size of the limiter's bucket: it holds LIMIT x this time requests (at least 1)."),
        ("--limit-mode", "limit_mode", click.Choice(["refuse", "delay"]), "refuse",
         "refuse requests above the limit, or delay them."),
        ("--limit-per", "limit_per", click.Choice(["service", "connection", "user"]), "service",
         "What each bucket of the limiter is for."),
        ("--error-share", "error_share", ShareParam(least=0.0), "0%",
         "Share of token requests answered with 500, at any rate."),
        ("--lockout-after", "lockout_after", click.IntRange(1, 1_000_000), None,
         "After this many failed token requests within --lockout-for, answer all with 403."),
        ("--lockout-for", "lockout_s", Span(), "60s", "Duration of a lockout."),
        ("--max-connections", "max_connections", click.IntRange(1, 1_000_000), None,
         "Maximum number of open connections."),
        ("--over-connections", "over_connections", _OVER, "refuse",
         "What happens to connections beyond --max-connections. refuse: connecting fails; reset: "
         "they are accepted and reset; wait: they stay in the listen queue until another closes."),
        ("--oidc-users", "oidc_users", click.Path(path_type=Path, dir_okay=False), None,
         "Users of --oidc: CSV (username,password), YAML or JSON. A CSV file that does not exist "
         f"is written, with {OIDC_USERS} users and new passwords. Default: the administrator."),
        ("--client-id", "client_id", str, "loadstone", "Client of --oidc."),
        ("--redirect-uri", "redirect_uri", str, "http://127.0.0.1/callback",
         "Redirect URI of that client, for logins and logouts."),
        ("--seed", "seed", click.IntRange(0, 2**63 - 1), 1, "Random seed of the service times."),
        ("--script", "script", click.Path(path_type=Path, dir_okay=False, exists=True), None,
         "YAML file of faults at given seconds after the start: - {at: 10, dark: 1}, "
         "- {at: 20, slow: 3, for: 4}, - {at: 30, refuse: 0.3, for: 2}. --counts and "
         "/loadstone/counts record when each happened."),
        ("--port-file", "port_file", OutputFile(), None, "Write the port to this file."),
        ("--counts", "counts", OutputFile(), None,
         "Write request counts as JSON on exit; - is stdout."),
    ),
)  # fmt: skip


@click.command()
@serve_options
def serve(**options: Unpack[ServeOptions]) -> None:
    """Serve Identity v3 from memory: a target with correct responses and a known capacity.

    Prints OS_* variables for a shell, then serves until Ctrl-C. The administrator's password is
    generated, unless LOADSTONE_SERVE_PASSWORD is set. With --capacity, --workers behind one queue
    serve token requests (everything below /v3/auth) at exactly that rate. With --oidc it is also
    an OpenID provider; one request of each flow counts as a token request.

    \b
    loadstone serve > service.env &
    sleep 2; . ./service.env; loadstone capacity --scenario validate
    """
    chosen = _settings(options)
    ended = threading.Event()
    if options["until_stdin_closes"]:
        threading.Thread(target=_await_end_of_stdin, args=(ended,), daemon=True).start()

    def ready(port: int) -> None:
        _print_environment(chosen, port)
        if options["port_file"] is not None:
            write(str(port), options["port_file"])

    counts = service.serve(chosen, ready, lambda: not ended.is_set())
    if options["counts"] is not None:
        write(counts, options["counts"])
    for warning in _warnings(json.loads(counts), chosen.max_tokens):
        click.echo(f"loadstone: warning: {warning}.", err=True)


def _await_end_of_stdin(ended: threading.Event) -> None:
    # Standard input ends when the parent closes it or dies.
    while os.read(0, 4096):
        pass
    ended.set()


def _settings(options: ServeOptions) -> service.ServiceSettings:
    """Return the settings from the options; InvalidInput if they are contradictory."""
    _refuse_options_without_effect(click.get_current_context())
    password = os.environ.get(PASSWORD) or secrets.token_urlsafe(24)
    return service.ServiceSettings(
        admin=service.Admin(options["user"], password, options["project"]),
        host=options["host"],
        port=options["port"],
        threads=options["threads"],
        token_life_s=options["token_life_s"],
        max_tokens=options["max_tokens"],
        only_errors=options["only_errors"],
        error_share=options["error_share"],
        idle_timeout_s=options["idle_timeout_s"],
        capacity=_capacity(options),
        limit=_limit(options),
        lockout=_lockout(options),
        connections=_connections(options),
        oidc=_oidc(options, password),
        script=() if options["script"] is None else service.read_script(options["script"]),
    )


def _capacity(options: ServeOptions) -> service.FixedCapacity | None:
    if options["capacity_rps"] is None:
        return None
    return service.FixedCapacity(
        workers=options["workers"],
        service_s=options["workers"] / options["capacity_rps"],
        law=service.Law(options["law"]),
        even_over=options["even_over"],
        stall_every_s=options["stall_every_s"],
        stall_s=options["stall_s"],
        halve_at_s=options["halve_at_s"],
        decline=options["decline"],
        collapse_above=options["collapse_above"],
        collapse_by=options["collapse_by"],
        max_queue=options["max_queue"],
        queue_timeout_s=options["queue_timeout_s"],
        seed=options["seed"],
    )


def _limit(options: ServeOptions) -> service.RateLimit | None:
    if options["limit_rps"] is None:
        return None
    return service.RateLimit(
        rate_rps=options["limit_rps"],
        burst_s=options["burst_s"],
        mode=service.LimitMode(options["limit_mode"]),
        per=service.LimitPer(options["limit_per"]),
    )


def _lockout(options: ServeOptions) -> service.Lockout | None:
    if options["lockout_after"] is None:
        return None
    return service.Lockout(options["lockout_after"], options["lockout_s"])


def _connections(options: ServeOptions) -> service.Connections | None:
    if options["max_connections"] is None:
        return None
    over = service.OverConnections(options["over_connections"])
    return service.Connections(options["max_connections"], over)


def _oidc(options: ServeOptions, password: str) -> service.OidcProvider | None:
    if not options["has_oidc"]:
        return None
    return service.OidcProvider(
        client_id=options["client_id"],
        client_secret=os.environ.get(CLIENT_SECRET) or secrets.token_urlsafe(24),
        redirect_uri=options["redirect_uri"],
        users=_oidc_users(options["oidc_users"]) or ((options["user"], password),),
    )


def _oidc_users(path: Path | None) -> tuple[tuple[str, str], ...]:
    from loadstone.oidc.users import read_users, write_users

    if path is None:
        return ()
    is_new = path.suffix.lower() == ".csv" and not os.path.exists(path)
    users = write_users(path, OIDC_USERS) if is_new else read_users(path)
    return tuple((user.name, user.password) for user in users)


def _refuse_options_without_effect(ctx: click.Context) -> None:
    flags = {option.name: option.opts[0] for option in ctx.command.params}
    for needed, (dependent, reason) in DEPENDENT.items():
        used = [
            flags[name]
            for name in dependent
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        ]
        if used and not ctx.params[needed]:
            verb = "needs" if len(used) == 1 else "need"
            raise InvalidInput(f"{', '.join(used)} {verb} {flags[needed]}: {reason}")


def _print_environment(chosen: service.ServiceSettings, port: int) -> None:
    """Print OS_* for a shell; a password from the environment appears as its variable."""
    given = {"OS_PASSWORD": PASSWORD, CLIENT_SECRET: CLIENT_SECRET}
    variables = service.environment_variables(chosen, port) | service.oidc_variables(chosen, port)
    if others := unset(variables):
        click.echo(others)
    for name, value in variables.items():
        source = given.get(name, "")
        if os.environ.get(source):
            click.echo(f'export {name}="${source}"')
        else:
            click.echo(f"export {name}={shlex.quote(value)}")


def _warnings(counts: dict[str, Any], max_tokens: int) -> Iterator[str]:
    """Yield warnings about a service that could not keep its settings."""
    pacing = counts["kept"]
    if pacing and pacing["short_seconds"]:
        yield (
            f"--capacity was more than this machine can serve in {pacing['short_seconds']} of "
            f"{pacing['seconds']} s: a thread was busy all the time while workers were idle. "
            f"{pacing['late']} answers were late by more than 1 ms, the worst by "
            f"{1000 * pacing['worst_late_s']:.0f} ms. Lower --capacity or raise --threads"
        )
    if counts["tokens_evicted"]:
        yield (
            f"more tokens were valid than --max-tokens {max_tokens} allows: "
            f"{counts['tokens_evicted']} of them forgotten"
        )
