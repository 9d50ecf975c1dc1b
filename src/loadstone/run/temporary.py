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
        if _is_gone(choice) and remaining(journal):
            forget(journal)
            say(f"run {run_id} has left nothing: its target was removed with all data")


def _is_gone(choice: TargetChoice) -> bool:
    match choice:
        case OwnLab(name=name, is_purged=True):
            # Imported here: only a lab on this machine needs it.
            from loadstone.lab import deployment

            return not deployment.is_here(name)
        case LabOnHost():
            return True  # its host removes it, even if this machine is gone
        case ReferenceService():
            return True  # its data were in the memory of its process
        case _:
            return False
