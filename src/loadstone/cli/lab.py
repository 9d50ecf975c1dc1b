"""`loadstone lab`: real Keystones on this machine."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import click

from loadstone.cli.stored import JSON, write_json


@click.group()
def lab() -> None:
    """Start, find and end real Keystones on this machine."""


@lab.command()
@click.argument("name")
@click.option("--workers", metavar="N", help="Processes that serve (default: the cores).")
@click.option("--threads", metavar="N", help="Threads of each (default: 1).")
@click.option("--port", metavar="P", help="Port on 127.0.0.1 (default: a free one).")
@click.option("--with", "pairs", multiple=True, metavar="KEY=VALUE", help="Any setting; repeat.")
@click.option("--settings", "file", metavar="FILE", help="Settings as YAML; the others win.")
def up(name: str, pairs: tuple[str, ...], file: str | None, **short: str | None) -> None:
    """Start the deployment NAME and print its URL."""
    from loadstone.keystone import deployment
    from loadstone.keystone.deploy import settings
    from loadstone.keystone.deploy.settings_file import read_file

    from_file = read_file(Path(file)) if file is not None else ()
    given = [(key, value) for key, value in short.items() if value is not None]
    chosen = settings.read([*from_file, *(settings.split(pair) for pair in pairs), *given])
    started = deployment.up(name, chosen, lambda line: click.echo(f"{name}: {line}", err=True))
    click.echo(started.url)


@lab.command()
@click.argument("name")
@click.option("--purge", is_flag=True, help="Remove its data, keys and logs too.")
def down(name: str, purge: bool) -> None:
    """End the deployment NAME; its data stays for the next `up`."""
    from loadstone.keystone import deployment

    deployment.down(name, purge=purge)


@lab.command("list")
@JSON
def list_(to: TextIO | None) -> None:
    """List all deployments, running or not."""
    from loadstone.keystone import deployment

    rows = [one.summary() for one in deployment.every(lambda said: click.echo(said, err=True))]
    if to is not None:
        write_json([asdict(row) for row in rows], to)
        return
    head = ("NAME", "STATE", "URL", "WORKERS", "PID", "MEMORY MB")
    table = [head, *(["-" if v is None else str(v) for v in asdict(row).values()] for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for line in table:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@lab.command()
@click.argument("name")
@click.option("--clouds-yaml", is_flag=True, help="As a clouds.yaml, with NAME as its entry.")
def env(name: str, clouds_yaml: bool) -> None:
    """Print NAME's OS_* variables for a shell: eval "$(loadstone lab env NAME)"."""
    from loadstone.keystone import deployment

    found = deployment.find(name)
    if clouds_yaml:
        import yaml

        click.echo(yaml.safe_dump({"clouds": {name: found.cloud()}}, sort_keys=False), nl=False)
        return
    for key, value in found.environment_variables().items():
        click.echo(f"export {key}={shlex.quote(value)}")


@lab.command()
@click.argument("name")
@click.argument("part", required=False)
@click.option("-n", "lines", type=click.IntRange(1), default=20, help="Lines of each log.")
def logs(name: str, part: str | None, lines: int) -> None:
    """Show the last lines of NAME's logs, of all parts or of one."""
    from loadstone.errors import InvalidInput
    from loadstone.keystone import deployment
    from loadstone.lab.logs import tail

    found = deployment.known(name).logs()
    parts = tuple(dict.fromkeys(of for of, _ in found))
    if part is not None and part not in parts:
        raise InvalidInput(f"{name} has no part {part!r} with logs; it has {', '.join(parts)}")
    shown: set[Path] = set()
    for of, path in found:
        if part in (None, of) and path not in shown:  # two parts may share one
            shown.add(path)
            click.echo(f"==> {of}: {path}")
            click.echo("".join(f"{line}\n" for line in tail(path, lines)), nl=False)
