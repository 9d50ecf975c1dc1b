"""Targets that are removed: what a run left in one is gone with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from loadstone.keystone.clean import forget, remaining
from loadstone.keystone.journal import JOURNAL
from loadstone.store.store import Store
from loadstone.system.say import Say
from loadstone.target.choice import LabOnHost, NamedTarget, OwnLab, ReferenceService, TargetChoice


@contextmanager
def gone_with_target(choice: TargetChoice, run_id: str, store: Store, say: Say) -> Iterator[None]:
    """Record at the end, if the target was removed with all data, that the run left nothing in it.

    Another command may have removed a lab.
    """
    goes = is_temporary(choice) or _is_there(choice)
    try:
        yield
    finally:
        journal = store.folder(run_id) / JOURNAL
        if goes and not _is_there(choice) and remaining(journal):
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


def _is_there(choice: TargetChoice) -> bool:
    """Return whether the target is a lab that exists, or at least its data."""
    match choice:
        case OwnLab(name=name) | NamedTarget(lab=str(name)):
            # Imported here: only a lab needs it.
            from loadstone.lab import deployment

            return deployment.is_known(name)
        case _:
            return False
