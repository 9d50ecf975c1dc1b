"""`loadstone --version`: the version, the commit and the version of the engine."""

import subprocess
from importlib.metadata import version as installed_version
from pathlib import Path

import click

PACKAGE = Path(__file__).parents[1]


def show(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print the version and end."""
    if not is_asked or ctx.resilient_parsing:
        return
    click.echo(f"loadstone {installed_version('loadstone')} ({', '.join(_details())})")
    ctx.exit()


def _details() -> list[str]:
    found = commit()
    try:
        from loadstone.engine.version import version
    except ImportError as missing:
        engine = f"no engine: {missing}"
    else:
        engine = f"engine {version()}"
    return [f"commit {found}", engine] if found else [engine]


def commit(package: Path = PACKAGE) -> str:
    """Return the commit of a wheel or of a git checkout; empty if neither knows it."""
    built = package / "commit"  # written by `make wheels`
    if built.exists():
        return built.read_text().strip()
    checkout = package.parents[1]
    if not (checkout / ".git").exists():
        return ""
    git = ("git", "-C", str(checkout))
    words = (*git, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty")
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
