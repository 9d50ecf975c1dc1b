"""`loadstone lab`: real Keystones on this machine, or on lab hosts of a fleet."""

import shlex
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from loadstone.cli.choose import UNDONE_ANYWAY, refuse_given
from loadstone.cli.generator import OF_FLEET, FleetOptions, fleet_options
from loadstone.cli.output import show_rows
from loadstone.cli.shell import unset
from loadstone.cli.stored import JSON, write_json

if TYPE_CHECKING:
    from loadstone.lab.remote_lab import RemoteRecord


@click.group()
def lab() -> None:
    """Start, find and stop real Keystones on this machine, or on lab hosts of a fleet."""


class UpOptions(FleetOptions):
    """Options of `lab up`."""

    workers: str | None
    threads: str | None
    port: str | None
    address: str | None
    host: str | None
    pairs: tuple[str, ...]
    population: str | None
    file: str | None


@lab.command()
@click.argument("name")
@click.option("--workers", metavar="N", help="Keystone processes (default: one per core).")
@click.option("--threads", metavar="N", help="Threads per process (default: 1).")
@click.option("--port", metavar="P", help="Port to listen on (default: a free one).")
@click.option("--address", metavar="IP", help="Private address to listen on (default: 127.0.0.1).")
@click.option(
    "--on",
    "host",
    metavar="HOST",
    help="Start it on a lab host of the fleet (--fleet): the address of a host that has a worker "
    "with --role lab, or its name in the file of hosts.",
)
@click.option(
    "--with",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting (docs/lab.md); may be repeated.",
)
@click.option(
    "--population",
    metavar="SPEC",
    help="Users, projects and so on in its database: users=100000,projects=5000,groups=20,"
    "roles-per-user=3,unique-passwords=100.",
)
@click.option(
    "--settings", "file", metavar="FILE", help="File of settings in YAML. Options override it."
)
@fleet_options
def up(name: str, **options: Unpack[UpOptions]) -> None:
    """Start the deployment NAME and print its URL."""
    from loadstone.errors import InvalidInput
    from loadstone.lab import deployment, remote_lab
    from loadstone.lab.keystone import settings
    from loadstone.lab.keystone.settings_file import read_file

    from_file = read_file(Path(options["file"])) if options["file"] is not None else ()
    short = (
        *(("workers", options["workers"]), ("threads", options["threads"])),
        *(("port", options["port"]), ("address", options["address"])),
    )
    from_options = [(key, value) for key, value in short if value is not None]
    population = options["population"]
    crowd = settings.read_population(population) if population is not None else ()
    given = (*map(settings.split, options["pairs"]), *crowd, *from_options)
    keys = [key for key, _ in given]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise InvalidInput(f"setting {twice} is given twice, and a lab has one value of each")
    pairs = (*from_file, *given)
    if options["host"] is not None:
        settings.require_possible(pairs)  # before the host is asked
        click.echo(_up_there(name, options["host"], pairs, options))
        return
    if options["fleet"] is not None:
        raise click.UsageError("--fleet needs --on HOST: a lab host of that fleet")
    refuse_given(click.get_current_context(), OF_FLEET, "needs --fleet")
    record = remote_lab.recorded(name)
    if record is not None:
        raise InvalidInput(
            f"lab {name} is on another host; start it there: {_place(record)}; or remove it: "
            f"loadstone lab down {name} --purge"
        )
    chosen = deployment.requested(name, pairs)
    started = deployment.up(name, chosen, lambda line: click.echo(f"{name}: {line}", err=True))
    click.echo(started.url)


def _place(record: "RemoteRecord") -> str:
    """Return the options of `lab up` that choose the host of a deployment."""
    words = ["--on", record.host, "--fleet", record.fleet]
    if record.certificates is not None:
        words += ["--fleet-certificates", record.certificates]
    if record.without_tls:
        words.append("--fleet-without-tls")
    return shlex.join(words)


def _up_there(name: str, host: str, pairs: tuple[tuple[str, str], ...], options: UpOptions) -> str:
    """Start a deployment on a lab host and record it; return its URL."""
    from loadstone.errors import InvalidInput, LoadstoneError
    from loadstone.lab import deployment, remote_lab

    if options["fleet"] is None:
        raise click.UsageError("--on HOST needs --fleet: the fleet that HOST is in")
    if deployment.is_here(name):
        raise InvalidInput(
            f"lab {name} is on this machine; end it first: loadstone lab down --purge {name}"
        )
    folder = options["certificates"]
    fleet = options["fleet"]
    record = remote_lab.RemoteRecord(
        name,
        host,
        str(Path(fleet).absolute()) if fleet.endswith((".yaml", ".yml")) else fleet,
        None if folder is None else str(folder.absolute()),
        options["without_tls"],
    )
    recorded = remote_lab.recorded(name)
    if recorded is not None and recorded != record:
        if recorded.host == host:
            raise InvalidInput(
                f"lab {name} was started on {host} with other options of the fleet; start it with "
                f"the same: {_place(recorded)}"
            )
        raise InvalidInput(
            f"lab {name} is on {recorded.host}; remove it: loadstone lab down {name} --purge"
        )
    with remote_lab.connected(record.place, is_alone=False) as there:
        remote_lab.keep(record)  # before the start, as Ctrl-C does not undo a partial start
        try:
            there.up(name, pairs, partial(click.echo, err=True), owned=False, purged=False)
        except LoadstoneError:
            if name not in [one.name for one in there.summaries()]:
                remote_lab.forget(name)
            raise
        return there.find(name).url


@lab.command()
@click.argument("name")
@click.option("--purge", is_flag=True, help="Also remove its data, keys and logs.")
@click.option("--forget", is_flag=True, help="Free the name of a lab whose host is lost.")
@UNDONE_ANYWAY
def down(name: str, purge: bool, forget: bool, anyway: bool) -> None:
    """Stop the deployment NAME; keep its data for the next `up`.

    This ends all faults of NAME that are still in force. --purge refuses to remove NAME before they
    are undone.
    """
    from loadstone.faults.pending import lab_target, require_undone
    from loadstone.lab import deployment, remote_lab

    if anyway and not purge:
        raise click.UsageError("--anyway needs --purge: nothing else waits for faults to be undone")
    if forget and purge:
        raise click.UsageError("--forget leaves the lab on its host as it is: without --purge")
    record = remote_lab.recorded(name)
    if record is None:
        if forget:
            raise click.UsageError(f"--forget: no lab {name} on another host is known")
        if purge:
            say = partial(click.echo, err=True)
            require_undone(lab_target(name), say, anyway=anyway)
        deployment.down(name, purge=purge)
        _forget_faults(name, purge=purge)
        return
    if forget:
        click.echo(
            f"forgot lab {name}; if host {record.host} still runs, so may the lab: end it "
            f"there with `loadstone lab down {name}`",
            err=True,
        )
        remote_lab.forget(name)
        return
    _down_there(record, purge=purge, anyway=anyway)


def _down_there(record: "RemoteRecord", *, purge: bool, anyway: bool) -> None:
    """Stop a deployment on another host; forget it if its data are gone."""
    from loadstone.cloud.cloud import Endpoint
    from loadstone.errors import LoadstoneError
    from loadstone.faults.journal import FaultTarget
    from loadstone.faults.pending import require_undone
    from loadstone.lab import remote_lab

    say = partial(click.echo, err=True)
    with ExitStack() as stack:
        try:
            there = stack.enter_context(remote_lab.connected(record.place, is_alone=False))
        except LoadstoneError as lost:
            raise type(lost)(
                f"{lost}\n  if host {record.host} is lost for good: "
                f"loadstone lab down {record.name} --forget"
            ) from None
        for one in there.summaries() if purge else ():
            if one.name == record.name and one.url:
                target = FaultTarget(None, (Endpoint.parse(one.url).place,))
                require_undone(target, say, anyway=anyway)
        there.down(record.name, say, purge=purge)
        if record.name not in [one.name for one in there.summaries()]:
            remote_lab.forget(record.name)


def _forget_faults(name: str, *, purge: bool) -> None:
    """Undo what is left of the faults of a stopped lab, and forget what was removed with it."""
    from loadstone.faults.journal import UndoJournal
    from loadstone.faults.pending import forget_lab, lab_target, require_undone
    from loadstone.faults.undo import undo_pending

    if purge:
        forget_lab(name)
    journal = UndoJournal.of(lab_target(name))
    if journal.path.exists():
        undo_pending(journal)
        require_undone(journal.target, partial(click.echo, err=True), anyway=True)


@lab.command("list")
@JSON
def list_(to: Path | None) -> None:
    """List all deployments, running or not."""
    from loadstone.lab import deployment, remote_lab

    say = partial(click.echo, err=True)
    local = deployment.every(say)
    rows: list[dict[str, Any]] = [asdict(one.summary()) for one in local]
    records = remote_lab.every(say)
    rows = [*({**row, "host": None} for row in rows), *(_summary_there(one) for one in records)]
    if to is not None:
        write_json(rows, to)
        return
    head = ["NAME", "STATE", "URL", "WORKERS", "PID", "MEMORY MB", "HOST"]
    columns = len(head) if records else len(head) - 1
    table = (["-" if v is None else str(v) for v in row.values()] for row in rows)
    show_rows(head[:columns], (line[:columns] for line in table))


def _summary_there(record: "RemoteRecord") -> dict[str, Any]:
    """Ask another host for the row of its deployment."""
    from loadstone.errors import LoadstoneError
    from loadstone.lab import remote_lab
    from loadstone.lab.keystone.deployment import DeploymentSummary

    try:
        with remote_lab.connected(record.place, is_alone=False) as there:
            found = {one.name: one for one in there.summaries()}
        unknown = DeploymentSummary(record.name, "gone", None, "-", None, None)
    except LoadstoneError as error:
        click.echo(f"{record.name}: {error}", err=True)
        found, unknown = {}, DeploymentSummary(record.name, "unknown", None, "-", None, None)
    return {**asdict(found.get(record.name, unknown)), "host": record.host}


@lab.command()
@click.argument("name")
@click.option("--clouds-yaml", is_flag=True, help="Print a clouds.yaml with NAME as its entry.")
def env(name: str, clouds_yaml: bool) -> None:
    """Print NAME's OS_* variables for a shell: eval "$(loadstone lab env NAME)"."""
    from loadstone.lab import deployment, remote_lab
    from loadstone.lab.keystone.deployment import cloud

    record = remote_lab.recorded(name)
    if record is None:
        variables = deployment.find(name).environment_variables()
    else:
        with remote_lab.connected(record.place, is_alone=False) as there:
            variables = there.find(name).variables
    if clouds_yaml:
        import yaml

        if "OS_AUTH_URL" not in variables:
            raise click.UsageError(f"{name} is an OpenID provider: clouds.yaml has Keystones only")

        click.echo(yaml.safe_dump({"clouds": {name: cloud(variables)}}, sort_keys=False), nl=False)
        return
    if others := unset(variables):
        click.echo(others)
    for key, value in variables.items():
        click.echo(f"export {key}={shlex.quote(value)}")


@lab.command()
@click.argument("name")
@click.argument("part", required=False)
@click.option(
    "-n",
    "lines",
    type=click.IntRange(1),
    default=20,
    show_default=False,
    help="Lines to show of each log.",
)
def logs(name: str, part: str | None, lines: int) -> None:
    """Show the last lines of NAME's logs, of all parts or of one."""
    from loadstone.errors import InvalidInput
    from loadstone.lab import deployment
    from loadstone.lab.logs import tail

    found = deployment.load(name).logs()
    parts = tuple(dict.fromkeys(owner for owner, _ in found))
    if part is not None and part not in parts:
        raise InvalidInput(f"{name} has no part {part!r} with logs; it has {', '.join(parts)}")
    printed: set[Path] = set()
    for owner, path in found:
        if part in (None, owner) and path not in printed:  # two parts may share one
            printed.add(path)
            click.echo(f"==> {owner}: {path}")
            click.echo("".join(f"{line}\n" for line in tail(path, lines)), nl=False)
