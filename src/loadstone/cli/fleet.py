"""`loadstone fleet`: hosts that send load together."""

import re
import shlex
from pathlib import Path

import click

from loadstone.cli.choose import refuse_given
from loadstone.cli.generator import fleet_options
from loadstone.cli.stored import JSON, write_json
from loadstone.engine.fleet.hosts_file import LAB, LOAD, ROLES

PORT = 8786  # Dask's default


@click.group()
def fleet() -> None:
    """Manage the processes that send one load from several hosts."""


@fleet.command()
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    help="Workers to start on this machine. Each sends a part of the load.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address of the scheduler. All hosts must reach it.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    help="Port of the scheduler.",
)
@click.option(
    "--join",
    metavar="tls://HOST:PORT",
    help="Start only workers, which join this scheduler. Its certificates must be on this machine "
    "(--fleet-certificates).",
)
@click.option(
    "--role",
    type=click.Choice(list(ROLES)),
    default=LOAD,
    help="What the workers do: send load, start Keystones for `lab up --on` and studies, or "
    "monitor their host.",
)
@click.option(
    "--fleet-certificates",
    "certificates",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for ca.pem, certificate.pem and key.pem, which are created if missing.",
)
def up(
    workers: int, host: str, port: int, join: str | None, role: str, certificates: Path | None
) -> None:
    """Start a scheduler and workers on this machine, or workers that join one elsewhere.

    All of them use TLS and refuse anyone without a certificate of the fleet. Copy the folder with
    the certificates to each host that is to join.
    """
    from loadstone.engine.fleet import address, daemons
    from loadstone.engine.fleet import certificates as pem
    from loadstone.errors import EnvironmentUnusable, InvalidInput

    if join is not None:
        why = "does not go with --join: the scheduler that is joined has its own"
        refuse_given(click.get_current_context(), ("host", "port"), why)
        if not re.fullmatch(r"tls://[^\s/?#@]+:\d{1,5}/?", join):
            raise InvalidInput("--join: write tls://HOST:PORT of a scheduler")
        join = join.rstrip("/")
    address.require_installed()
    folder = certificates or address.certificates()
    if daemons.running(folder):
        raise EnvironmentUnusable(
            f"processes of a fleet run on this machine already ({folder}); `loadstone fleet "
            f"down{_option(certificates)}` ends them"
        )
    if join is not None:
        address.read(join, folder)
    else:
        address.require_own(host, f"--host {host}")
        if not (folder / address.KEY).exists():
            pem.make(folder)
        address.usable(folder)
    try:
        url = join or daemons.start_scheduler(folder, host, port)
        daemons.start_workers(address.SchedulerAddress(url, folder), workers, role=role)
    except BaseException:
        daemons.end(folder)  # none ran before
        raise
    uses = "lab up NAME --on HOST" if role == LAB else "capacity"
    click.echo(f"loadstone {uses} --fleet {url}{_option(certificates)}")
    if join is None:
        of_role = "" if role == LOAD else f" --role {role}"
        click.echo(
            f"on other hosts, with {folder} copied there: loadstone fleet up --join {url}"
            f"{of_role}{_option(certificates)}"
        )


def _option(certificates: Path | None) -> str:
    """Return the option that names a folder of certificates; empty for the usual one."""
    if certificates is None:
        return ""
    return f" --fleet-certificates {shlex.quote(str(certificates))}"


@fleet.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def pack(folder: Path) -> None:
    """Write this Loadstone as a wheel, and its dependencies with their hashes, into a folder."""
    import shutil

    from loadstone.engine.fleet import wheel
    from loadstone.errors import EnvironmentUnusable

    try:
        folder.mkdir(parents=True, exist_ok=True)
        click.echo(wheel.pack(folder))
        click.echo(shutil.copy(wheel.REQUIREMENTS, folder))
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot write {folder}: {problem.strerror}") from None


@fleet.command()
@fleet_options
@JSON
def status(
    fleet: str | None, certificates: Path | None, without_tls: bool, to: Path | None
) -> None:
    """Show the hosts of a fleet: version, cores and clock offset."""
    from dataclasses import asdict

    from rich.table import Table

    from loadstone.engine import gate
    from loadstone.engine.fleet import address
    from loadstone.report.console import console

    url = fleet or f"tls://127.0.0.1:{PORT}"
    fleet_status = gate.fleet_status(address.read(url, certificates, without_tls=without_tls))
    if to is not None:
        write_json(asdict(fleet_status), to)
        return
    table = Table("host", "Loadstone", "cores", "clock, ms", "± ms", box=None)
    for one in fleet_status.hosts:
        cells = (one.name, one.loadstone, str(one.cores))
        table.add_row(*cells, f"{one.clock_offset_ms:+.2f}", f"{one.clock_error_ms:.2f}")
    console().print(table)
    if fleet_status.lab_hosts:
        console().print(f"lab hosts: {', '.join(fleet_status.lab_hosts)}", soft_wrap=True)
    if fleet_status.watch_hosts:
        console().print(f"watched: {', '.join(fleet_status.watch_hosts)}", soft_wrap=True)


@fleet.command()
@click.option(
    "--fleet-certificates",
    "certificates",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that was given to `fleet up`.",
)
def down(certificates: Path | None) -> None:
    """Stop the processes that `fleet up` started on this machine; keep the certificates."""
    from loadstone.engine.fleet import address, daemons

    count = daemons.end(certificates or address.certificates())
    click.echo(f"ended {count} process{'' if count == 1 else 'es'}")
