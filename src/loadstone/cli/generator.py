"""Options of the load generator: cores, protocol and fleet."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from loadstone.cli.choose import added, refuse_given
from loadstone.cli.duration import ShareParam

if TYPE_CHECKING:
    from loadstone.engine.fleet.address import FleetAddress
    from loadstone.plan.model import Http, Placement
    from loadstone.store.location import StoreLocation

# The maximum rate of every run; the ports and descriptors of one machine allow less.
HIGHEST_RPS = 100_000.0
OF_FLEET = ("certificates", "without_tls")  # options that say how a fleet is reached


class FleetOptions(TypedDict):
    """The values of `fleet_options`."""

    fleet: str | None
    certificates: Path | None
    without_tls: bool


class GeneratorOptions(FleetOptions):
    """The values of `generator_options` and `fleet_options`."""

    cores: tuple[int, ...]
    http: "Http"
    tls_resumption: bool | None


class LoadingOptions(GeneratorOptions):
    """The values of further options of every command that loads one target."""

    yes: bool
    anyway: bool
    trace_share: float
    location: "StoreLocation"
    to: Path | None
    is_dry: bool
    tags: tuple[tuple[str, str], ...]


class Cores(click.ParamType[tuple[int, ...]]):
    """Cores that this process may use, as 1, 0-1 or 0-1,3."""

    name = "cores"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the cores in order, without duplicates."""
        if isinstance(value, tuple):
            return value
        allowed = os.sched_getaffinity(0)
        cores: set[int] = set()
        for piece in str(value).split(","):
            match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", piece)
            if match is None:
                self.fail(f"{value!r} names no cores; write them like 1, 0-1 or 0-1,3", param, ctx)
            cores |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
        if not cores:
            self.fail(f"{value!r} names no cores; a range goes upwards, like 0-1", param, ctx)
        if beyond := sorted(cores - allowed):
            usable = ", ".join(map(str, sorted(allowed)))
            self.fail(f"core {beyond[0]} cannot be used; usable are {usable}", param, ctx)
        return tuple(sorted(cores))


_CORES = click.option(
    "--generator-cores",
    "cores",
    type=Cores(),
    default=(),
    metavar="CORES",
    help="Cores for the load generator, such as 1 or 0-1,3: one thread is pinned to each. By "
    "default it has one thread, which is not pinned.",
)
_HTTP2 = click.option(
    "--http2",
    "http",
    is_flag=True,
    callback=lambda _ctx, _param, is_on: "2" if is_on else "1.1",
    help="Send load over HTTP/2, with one connection per thread. Exit code 3 if the target does "
    "not offer it.",
)
_TLS_RESUMPTION = click.option(
    "--tls-resumption",
    "tls_resumption",
    type=click.Choice(["on", "off"]),
    callback=lambda _ctx, _param, value: value and value == "on",
    help="Whether a new connection resumes the TLS session of an earlier one. By default on if "
    "connections are kept, off if each new connection represents a new client.",
)
generator_options = added(_CORES, _HTTP2, _TLS_RESUMPTION)
TRACE_SHARE = click.option(
    "--trace-share",
    type=ShareParam(least=0.0),
    default="0%",
    help="Share of the requests that carry a W3C traceparent with the flag `sampled`; the slowest "
    "of them are listed with their trace ids, to be found in the service's own tracing.",
)

_FLEET = click.option(
    "--fleet",
    metavar="WHERE",
    help="Fleet of hosts that send load: local:4 (processes on this machine), tls://HOST:8786 (a "
    "Dask scheduler, which `loadstone fleet up` starts), or FILE.yaml (hosts that are reached by "
    "ssh and started for the run).",
)
_CERTIFICATES = click.option(
    "--fleet-certificates",
    "certificates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the fleet's ca.pem, certificate.pem and key.pem. Default: the folder that "
    "`loadstone fleet up` uses.",
)
_WITHOUT_TLS = click.option(
    "--fleet-without-tls",
    "without_tls",
    is_flag=True,
    help="Permit a scheduler without TLS that is not on loopback. Anyone who reaches it can run "
    "programs on all hosts of the fleet.",
)


fleet_options = added(_FLEET, _CERTIFICATES, _WITHOUT_TLS)


def fleet_of(options: FleetOptions) -> "FleetAddress | None":
    """Return the fleet that the options name; None: this machine sends the load."""
    if options["fleet"] is None:
        refuse_given(click.get_current_context(), OF_FLEET, "needs --fleet")
        return None
    from loadstone.engine.fleet import address

    return address.read(
        options["fleet"], options["certificates"], without_tls=options["without_tls"]
    )


def placement_of(options: GeneratorOptions) -> "Placement":
    """Return how the load generator is placed on this machine, and what it speaks."""
    from loadstone.plan.model import Placement

    return Placement.on(options["cores"], options["http"], options["tls_resumption"])
