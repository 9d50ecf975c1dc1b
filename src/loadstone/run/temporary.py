"""Temporary targets: what a run left in one is gone with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from loadstone.keystone.clean import forget, remaining
from loadstone.keystone.journal import JOURNAL
from loadstone.store.store import Store
from loadstone.system.say import Say
from loadstone.target.choice import LabOnHost, OwnLab, ReferenceService, TargetChoice


@contextmanager
def gone_with_target(choice: TargetChoice, run_id: str, store: Store, say: Say) -> Iterator[None]:
    """Record at the end, when a temporary target is removed, that the run left nothing in it."""
    try:
        yield
    finally:
        journal = store.folder(run_id) / JOURNAL
        if is_temporary(choice) and not _is_here(choice) and remaining(journal):
            forget(journal)
            say(f"run {run_id} has left nothing: its target was removed with all data")


def is_temporary(choice: TargetChoice) -> bool:
    """Return whether the target is removed with all data at its end."""
    match choice:
        case OwnLab(is_purged=is_purged):
            return is_purged
        case LabOnHost():
            return True  # its host removes it, even if this machine is gone
        case ReferenceService():
            return True  # its data are in the memory of its process
        case _:
            return False


def _is_here(choice: TargetChoice) -> bool:
    if not isinstance(choice, OwnLab):
        return False
    # Imported here: only a lab on this machine needs it.
    from loadstone.lab import deployment

    return deployment.is_here(choice.name)
