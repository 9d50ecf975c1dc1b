"""Imports runs exported by another store or measured by Rally."""

from pathlib import Path
from zipfile import is_zipfile

from loadstone.rally import results
from loadstone.store import bundle
from loadstone.store.store import Store


def import_file(store: Store, path: Path) -> tuple[str, ...]:
    """Import a bundle or a file of Rally's results; return the run ids."""
    return (
        (bundle.import_run(store, path),) if is_zipfile(path) else results.import_file(store, path)
    )
