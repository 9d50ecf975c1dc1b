"""`loadstone hit`: load on any URL."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from loadstone.cli.choose import ANYWAY, MONITOR, PERMISSION, TAG, backend_of
from loadstone.cli.dry_run import DRY_RUN, show_dry_config
from loadstone.cli.duration import RateRange, Span
from loadstone.cli.generator import (
    HIGHEST_RPS,
    TRACE_SHARE,
    LoadingOptions,
    fleet_of,
    fleet_options,
    generator_options,
    placement_of,
)
from loadstone.cli.output import command_line, run_and_show
from loadstone.cli.stored import JSON, STORE
from loadstone.cli.watching import watching_options

if TYPE_CHECKING:
    from loadstone.plan.load import ClosedLoad, OpenLoad
    from loadstone.workload.hit import HitTerms
    from loadstone.workload.model import RunConfig

MOST_BODY = 16 << 20


class HitOptions(LoadingOptions):
    """The values of the options."""

    url: str
    rate_rps: float | None
    seconds: float
    concurrency: int | None
    method: str
    headers: tuple[tuple[str, str], ...]
    body: Path | None
    status: int
    timeout_s: float
    insecure: bool
    max_connections: int
    objective: tuple[str, ...]
    watched: tuple[str, ...]


class HeaderParam(click.ParamType[tuple[str, str]]):
    """NAME: VALUE."""

    name = "NAME: VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return name and value; a message never repeats the value."""
        name, colon, text = str(value).partition(":")
        if not colon or not name.strip() or any(sign in str(value) for sign in "\r\n\0"):
            self.fail("a header is NAME: VALUE, in one line", param, ctx)
        try:
            str(value).encode()
        except UnicodeEncodeError:  # bytes of the command line
            self.fail("a header is UTF-8 text", param, ctx)
        return name.strip(), text.strip()


@click.command()
@click.argument("url", metavar="URL")
@click.option(
    "--rate",
    "rate_rps",
    type=RateRange(0.1, HIGHEST_RPS),
    help="Requests per second, however slow the answers (open loop). Default: 50.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    help="Number of requests in flight, instead of a rate (closed loop).",
)
@click.option(
    "--for",
    "seconds",
    type=Span(is_positive=True),
    default="10s",
    help="Duration of the load.",
)
@click.option("--method", default="GET", help="Method of the request.")
@click.option(
    "--header",
    "headers",
    type=HeaderParam(),
    multiple=True,
    help="Header of the request; may be repeated. Values that may be secret are not stored.",
)
@click.option(
    "--body",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the body of the request.",
)
@click.option(
    "--expect",
    "status",
    type=click.IntRange(200, 599),
    default=200,
    help="Expected status; any other is a failure.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Span(is_positive=True),
    default="30s",
    help="How long to wait for a response.",
)
@click.option("--insecure", is_flag=True, help="Do not verify the certificate.")
@click.option(
    "--max-connections",
    type=click.IntRange(1, 60_000),
    default=10_000,
    help="Maximum number of open connections (with --http2: of requests in flight).",
)
@click.option(
    "--objective",
    multiple=True,
    metavar="TEXT",
    help="Objective: 'p99<500ms', 'errors<0.1%'; may be repeated.",
)
@generator_options
@TRACE_SHARE
@fleet_options
@PERMISSION
@ANYWAY
@MONITOR
@TAG
@DRY_RUN
@watching_options
@STORE
@JSON
@click.pass_context
def hit(ctx: click.Context, **options: Unpack[HitOptions]) -> None:
    """Send requests to URL at a rate: no cloud, no users, one result.

    Latency counts from when a request was due, so that a slow service cannot hide it. Redirects are
    not followed. The result is stored like any other: loadstone report latest.

    \b
    loadstone hit http://127.0.0.1:8080/health --rate 50 --for 10s
    loadstone hit https://test.example/ --rate 200 --for 1m --yes-load-this-target
    loadstone hit http://127.0.0.1:8080/ --concurrency 8 --objective 'p99<200ms'

    Exit code 0 if the rate was sustained and every objective met, 1 if not, 2 for wrong usage, 3 if
    the service cannot be used, 4 if the load generator was the limit or the load was too short to
    tell (a rate needs 3 s and about 30 requests), 70 after an internal error.
    """
    config = _config(options)
    if options["is_dry"]:
        show_dry_config(config, options["to"])
        return
    ctx.exit(run_and_show(config, backend_of(ctx), options["location"], options["to"]))


def _config(options: HitOptions) -> "RunConfig":
    from loadstone.system.redaction import secrets_in
    from loadstone.target.choice import WebService
    from loadstone.workload.hit import hit_group
    from loadstone.workload.model import RunConfig

    terms = _terms(options)
    group = hit_group(terms)
    target = WebService(
        terms.shown_url,
        options["yes"],
        options["anyway"],
        verify=terms.verify,
        watched=options["watched"],
    )
    return RunConfig(
        kind="hit",
        target=target,
        groups=(group,),
        command=command_line({terms.url: terms.shown_url}),
        max_rate_rps=_most_rps(terms.load),
        budget_s=options["seconds"] + 1.0,
        fleet=fleet_of(options),
        secrets=secrets_in({"url": terms.url, "headers": dict(terms.headers)}),
        tags=options["tags"],
        trace_share=options["trace_share"],
    )


def _most_rps(load: "OpenLoad | ClosedLoad") -> float:
    """Return the highest rate: twice that of an open loop.

    At the rate itself, one delay of the generator would make all later requests late.
    """
    from loadstone.plan.load import OpenLoad

    return 2 * load.rate_rps if isinstance(load, OpenLoad) else HIGHEST_RPS


def _terms(options: HitOptions) -> "HitTerms":
    from loadstone.errors import InvalidInput
    from loadstone.plan.load import ClosedLoad, OpenLoad
    from loadstone.workload.hit import HitTerms

    seconds, workers = options["seconds"], options["concurrency"]
    if workers is not None and options["rate_rps"] is not None:
        raise click.UsageError("give --rate (open loop) or --concurrency (closed loop), not both")
    if workers is not None and workers > options["max_connections"]:
        raise click.UsageError(
            f"--concurrency {workers} needs as many connections, and --max-connections allows "
            f"{options['max_connections']}"
        )
    body = None
    if options["body"] is not None:
        if options["body"].stat().st_size > MOST_BODY:
            raise InvalidInput(f"--body {options['body']}: larger than {MOST_BODY >> 20} MiB")
        try:
            # As bytes: reading as text would change the ends of lines.
            body = options["body"].read_bytes().decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"--body {options['body']}: is not UTF-8 text") from None
    return HitTerms(
        url=options["url"],
        load=ClosedLoad(workers, duration_s=seconds)
        if workers is not None
        else OpenLoad(options["rate_rps"] or 50.0, seconds),
        method=options["method"].upper(),
        headers=options["headers"],
        body=body,
        status=options["status"],
        verify=not options["insecure"],
        timeout_s=options["timeout_s"],
        max_connections=options["max_connections"],
        objectives=options["objective"],
        placement=placement_of(options),
    )
