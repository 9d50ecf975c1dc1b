"""Maintenance of a store as it is opened: permissions, rows kept in files, killed runs."""

from sqlalchemy import Engine

from loadstone.store import database, privacy, recovery
from loadstone.store.location import StoreLocation


def at_start(location: StoreLocation, engine: Engine) -> tuple[str, ...]:
    """Repair permissions and bring in missing rows; return a line for each change."""
    lines = []
    if privacy.make_private(location):
        lines.append(
            f"other users could read the results in {location.folder}; their folders are now "
            "0700, their files 0600"
        )
    if database.is_in_memory(engine):  # which would lose them again
        return tuple(lines)
    for found in recovery.recover_marked(location.folder, engine):
        lines += [str(found)] if found.is_news else []
        lines += found.problems
    if database.is_postgresql(engine):  # which other machines read, too
        recovery.end_killed(location.folder, engine)
    return tuple(lines)
