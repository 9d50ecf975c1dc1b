"""Takes in what another store, or another tool, has measured."""

from pathlib import Path
from zipfile import is_zipfile

from loadstone.rally import results
from loadstone.store import bundle
from loadstone.store.store import Store


def take_in(store: Store, path: Path) -> tuple[str, ...]:
    """Keep what the file holds, of whichever kind it is, and give the run ids."""
    return (bundle.take_in(store, path),) if is_zipfile(path) else results.take_in(store, path)
