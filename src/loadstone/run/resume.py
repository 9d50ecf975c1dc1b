"""Continues with the users of an interrupted run (--resume-users).

The users keep the names and the journal of the run that created them. The later run's folder links
to that journal, so that `loadstone results clean` finds them under either id.
"""

import os
from pathlib import Path

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.clean import require_same_cloud
from loadstone.keystone.journal import JOURNAL, read
from loadstone.store.store import Store


def maker(store: Store, name: str, access: Access) -> str:
    """Return the run that the users are named after; InvalidInput if it has left no users."""
    result = store.get(name)
    if result.status == "running":
        raise InvalidInput(
            f"--resume-users: run {result.run_id} is at work with its users; end it first (Ctrl-C)"
        )
    store.require_files(result.run_id)
    record = read(store.folder(result.run_id) / JOURNAL)
    if record is None or not record.remaining:
        raise InvalidInput(
            f"--resume-users: run {result.run_id} left no users to resume with; run "
            "without this option, which creates them"
        )
    require_same_cloud(record, access)
    return record.run_id


def link(folder: Path, makers_folder: Path) -> None:
    """Link a run's journal to that of the run that created the users."""
    path = folder / JOURNAL
    try:
        path.symlink_to(os.path.relpath(makers_folder / JOURNAL, folder))
    except OSError as problem:
        raise EnvironmentUnusable(
            f"--resume-users: {path} cannot be a symbolic link: {problem.strerror}; choose a store "
            "on a file system that has them"
        ) from problem
