"""Permissions of a store: readable by its owner only."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loadstone.store import row_files
from loadstone.store.location import StoreLocation
from loadstone.store.run_id import is_run_id
from loadstone.system import files

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# What a store consists of; anything else in its folder is not Loadstone's and is left alone.
_DATABASE = tuple(f"results.db{end}" for end in ("", "-journal", "-wal", "-shm"))
_JOURNALS = (("studies", "cells.jsonl"), ("tunings", "comparisons.jsonl"))


def make_private(location: StoreLocation) -> bool:
    """Close a store to other users; return whether they could read it and no longer can.

    A folder that a PostgreSQL store names for several users (`?files=`) is left as it is, and so is
    what belongs to another user.
    """
    folder = location.folder
    if location.has_named_folder or not _is_ours(folder):
        return False
    own = _own(folder)
    holds_only_own = all(path in own for path in folder.iterdir())
    checked = [*own, folder] if holds_only_own else [*own]
    could_enter = _is_open(folder)
    # Nobody else reaches what lies in a closed folder, which may hold the user's own files.
    entered = [path for path in own if _is_open(path)]
    if not any(_is_open(path) for path in checked):
        return False
    for path in checked:
        _close(path)
    for path in entered:
        for below in _below(path):
            _close(below)
    return could_enter and not any(_is_open(path) for path in checked)  # on a read-only disk


def share(location: StoreLocation, run_folder: Path) -> None:
    """Give the files of a run the permissions that a folder named for several users has."""
    if not location.has_named_folder:
        return
    with suppress(OSError):
        granted = location.folder.stat().st_mode & _OTHERS
        for path in (run_folder, *_below(run_folder)):
            if not path.is_symlink():
                allowed = granted if path.is_dir() else granted & 0o066
                path.chmod(stat.S_IMODE(path.stat().st_mode) | allowed)


def _own(folder: Path) -> set[Path]:
    """Return what belongs to a store; of a folder that others use, too, only Loadstone's part."""
    own = {folder / name for name in _DATABASE if os.path.lexists(folder / name)}
    marks = folder / row_files.UNRECORDED
    known = {
        folder / "runs": set(row_files.run_folders(folder)),
        marks: {path for path in marks.glob("*") if is_run_id(path.name)},
    }
    for name, journal in _JOURNALS:
        known[folder / name] = {path.parent for path in (folder / name).glob(f"*/{journal}")}
    for place, found in known.items():
        if not place.is_dir():
            continue
        is_shared = _is_open(place) and found != set(place.glob("*"))
        own |= found if is_shared else {place}
    return own


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            yield Path(parent, name)


def _is_ours(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _is_open(path: Path) -> bool:
    with suppress(OSError):
        found = path.lstat()
        return bool(found.st_mode & _OTHERS) and not stat.S_ISLNK(found.st_mode)
    return False


def _close(path: Path) -> None:
    with suppress(OSError):  # it is gone, or belongs to another user
        if _is_open(path):
            path.chmod(files.PRIVATE_FOLDER if path.is_dir() else files.PRIVATE)
