"""Options for the display of progress: the terminal, the live page, metrics."""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.choose import Command, added
from loadstone.system.say import Say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.live.feed import Feed
    from loadstone.live.metrics import MetricsEndpoint
    from loadstone.live.page import LivePage, Reports
    from loadstone.live.push import Destination, MetricsPush
    from loadstone.live.site import ListenAddress
    from loadstone.report.section import Report
    from loadstone.run.backend import Backend
    from loadstone.store.store import Store

SHOWN_RUNS = 2  # of a command, the last ones: bisect and tune measure many pairs
ANYWHERE = "127.0.0.1:0"  # a free port
BEYOND = "--live-beyond-loopback"
BEYOND_METRICS = "--metrics-beyond-loopback"
_KEY = f"{__name__}.options"  # in the context's meta: name of an option -> value


class Parsed(click.ParamType[Any]):
    """A text that a function of another module parses, which is imported on use."""

    def __init__(self, name: str, module: str, parse: str, hint: str = "") -> None:
        self.name, self._module, self._parse, self._hint = name, module, parse, hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what the function returns; its InvalidInput is a usage error."""
        from loadstone.errors import InvalidInput

        parse = getattr(import_module(self._module), self._parse)
        try:
            return parse(str(value))
        except InvalidInput as wrong:
            self.fail(f"{wrong}{self._hint}", param, ctx)


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_KEY, {})[option.name] = value


_kept = partial(click.option, expose_value=False, callback=_keep)
# HOST:PORT, or a PORT of this machine.
_ADDRESS = Parsed(
    "ADDRESS", "loadstone.live.site", "address", " (an option without its value goes last)"
)


def _beyond_option(name: str) -> Callable[[Command], Command]:
    return _kept(
        BEYOND,
        "is_beyond",
        is_flag=True,
        help=f"Permit a {name} address that other machines reach: with TLS, by a certificate whose "
        "fingerprint is printed. Anyone who knows the page's address can stop the command.",
    )


def _push_options(name: str, url: Parsed, about: str) -> Callable[[Command], Command]:
    return added(
        _kept(name, type=url, help=about),
        _kept(
            f"{name}-headers",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help=f"File with headers for {name}, one `Name: value` in each line; may hold secrets, "
            "which are stored nowhere.",
        ),
    )


# Of a command that only serves the page.
listening_options = added(
    _kept(
        "--listen",
        "live",
        type=_ADDRESS,
        default=ANYWHERE,
        help="Address to serve the page on; port 0: a free one.",
    ),
    _beyond_option("--listen"),
)
# Of what shows the command's progress; `watching` reads their values.
watching_options = added(
    _kept(
        "--live",
        type=_ADDRESS,
        is_flag=False,
        flag_value=ANYWHERE,
        metavar="[ADDRESS]",
        help="Serve a page that shows what is measured while it is measured; its address is "
        "printed. Default: a free port of 127.0.0.1.",
    ),
    _beyond_option("--live"),
    _kept(
        "--metrics",
        type=_ADDRESS,
        help="Serve metrics of what is measured while it is measured, for Prometheus, at "
        "http://ADDRESS/metrics.",
    ),
    _kept(
        BEYOND_METRICS,
        "is_metrics_beyond",
        is_flag=True,
        help="Permit a --metrics address that other machines reach; everyone who reaches it can "
        "read them.",
    ),
    _push_options(
        "--otlp",
        Parsed("URL", "loadstone.live.otlp", "collector_url"),
        "Push the metrics of --metrics to an OpenTelemetry collector (OTLP over HTTP) every 10 s; "
        "/v1/metrics is added to a URL without a path. Needs loadstone[otlp].",
    ),
    _push_options(
        "--remote-write",
        Parsed("URL", "loadstone.live.remote_write", "write_url"),
        "Push the metrics of --metrics to a Prometheus (remote write) every 10 s; /api/v1/write "
        "is added to a URL without a path. Needs loadstone[remote-write].",
    ),
    _kept(
        "--progress",
        type=click.Choice(["panel", "plain", "none"]),
        default="panel",
        help="How progress is shown on stderr. panel: on a terminal, redrawn in place; plain: a "
        "line every ten seconds, as without a terminal; none: only messages and verdicts.",
    ),
    _kept(
        "--quiet",
        "-q",
        is_flag=True,
        help="Print no progress, messages or verdicts on stderr; errors are printed.",
    ),
)


@contextmanager
def watching(
    backend: "Backend",
    store: "Store",
    reports: "Reports | None" = None,
) -> "Iterator[Feed]":
    """Yield the display of a command, which all that was asked for shows.

    `reports` is what the page shows of what has ended; by default the last runs of the command.
    """
    from loadstone.cli.screen import ProgressStyle, Screen
    from loadstone.live.feed import Feed, Viewer

    require_possible()
    given = _given()
    style = ProgressStyle.QUIET if given.get("quiet") else ProgressStyle(given["progress"])
    viewers: list[Viewer] = []
    feed = Feed(viewers, backend.clock)
    with ExitStack() as stack:
        if given["metrics"] is not None:
            viewers.append(stack.enter_context(_metrics(given["metrics"])))
        # Metrics that do not arrive are an error, which --quiet prints, too.
        is_quiet = style is ProgressStyle.QUIET
        complain = partial(click.echo, err=True) if is_quiet else feed.say
        viewers.extend(map(stack.enter_context, _pushes(given, complain)))
        if given["live"] is not None:
            # Only the page needs the templates of HTML.
            from loadstone.live.page import interrupt

            page = live_page(reports or partial(_of_runs, feed, store), stop=interrupt)
            stack.callback(page.close)
            viewers.append(page)
        # The terminal is restored before browsers get the final report.
        viewers.append(stack.enter_context(Screen(backend.clock, style)))
        try:
            yield feed
        finally:
            feed.end()


def require_possible() -> None:
    """Refuse options that lack a permission, or the option that they are about."""
    given = _given()
    _require_permitted(
        given["metrics"],
        "--metrics",
        BEYOND_METRICS,
        " and could read the metrics",
        is_permitted=given["is_metrics_beyond"],
    )
    _require_page_permitted(given)
    for option in ("--otlp", "--remote-write"):
        _destination(given, option)


def _require_page_permitted(given: "dict[str, Any]") -> None:
    _require_permitted(
        given["live"],
        "--live",
        BEYOND,
        ", and whoever knows the page's sees and can stop what is measured",
        is_permitted=given["is_beyond"],
    )


def _require_permitted(
    where: "ListenAddress | None", option: str, flag: str, danger: str, *, is_permitted: bool
) -> None:
    from loadstone.errors import InvalidInput

    if where is None and is_permitted:
        raise InvalidInput(f"{flag} needs {option}")
    if where is not None and not where.is_loopback and not is_permitted:
        raise InvalidInput(
            f"{where}: other machines reach this address{danger}; if that is meant, add {flag}"
        )


def _metrics(where: "ListenAddress") -> "MetricsEndpoint":
    """Serve metrics, and print their address."""
    from loadstone.live.metrics import MetricsEndpoint

    metrics = MetricsEndpoint(where, is_open=not where.is_loopback)
    click.echo(f"metrics: {metrics.url}", err=True)
    return metrics


def _pushes(given: "dict[str, Any]", say: Say) -> "Iterator[MetricsPush]":
    """Yield what pushes metrics, as the options ask."""
    if to := _destination(given, "--otlp"):
        from loadstone.live.otlp import Collector
        from loadstone.live.push import MetricsPush

        yield MetricsPush(Collector(to), say)
    if to := _destination(given, "--remote-write"):
        from loadstone.live.push import MetricsPush
        from loadstone.live.remote_write import RemoteWrite

        yield MetricsPush(RemoteWrite(to), say)


def _destination(given: "dict[str, Any]", option: str) -> "Destination | None":
    """Return the URL and the headers of an option; None if it is not given."""
    from loadstone.errors import InvalidInput

    name = option.removeprefix("--").replace("-", "_")
    url: str | None = given[name]
    headers: Path | None = given[f"{name}_headers"]
    if url is None:
        if headers is not None:
            raise InvalidInput(f"{option}-headers needs {option} URL")
        return None
    from loadstone.live.push import Destination, read_headers

    return Destination(url, read_headers(headers, f"{option}-headers") if headers else {})


def live_page(reports: "Reports", stop: Callable[[], None] | None) -> "LivePage":
    """Serve the page where the options say, and print its address."""
    from loadstone.live.page import LivePage, own_certificate

    given = _given()
    _require_page_permitted(given)
    where: ListenAddress = given["live"]
    tls = None
    if not where.is_loopback:
        tls, fingerprint = own_certificate(where)
        click.echo(f"certificate of the live page: SHA-256 {fingerprint}", err=True)
    page = LivePage(where, reports, stop=stop, tls=tls)
    click.echo(f"live page: {page.url}", err=True)
    return page


def _given() -> "dict[str, Any]":
    found: dict[str, Any] = click.get_current_context().meta[_KEY]
    return found


def _of_runs(feed: "Feed", store: "Store", *, is_over: bool) -> "Sequence[Report]":
    """Return the report of the command's run, or of the last pair that it has compared."""
    from loadstone.cli.report import reports_of

    return reports_of(store, feed.state.run_ids[-SHOWN_RUNS:], reads_samples=is_over)
