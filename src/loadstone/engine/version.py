"""The version of the engine."""

from loadstone._engine import __version__


def version() -> str:
    """Return the version of the Rust core."""
    return __version__
