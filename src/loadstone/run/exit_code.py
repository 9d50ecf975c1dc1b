"""The exit code of a run: its results, what it left in the cloud, and accepted ranges."""

from collections.abc import Iterable
from dataclasses import replace

from loadstone.keystone.clean import remaining
from loadstone.keystone.journal import JOURNAL, read
from loadstone.keystone.resources import Leftover
from loadstone.result.model import Run
from loadstone.store.location import StoreLocation
from loadstone.store.store import Store, run_folder


def accepting_ranges(run: Run) -> Run:
    """Return a run in which an interval that is too wide for a number is an answer, too.

    For where the measurements of several runs are combined.
    """
    return replace(
        run,
        measurements=tuple(
            replace(one, capacity=one.capacity.as_repeat) if one.capacity else one
            for one in run.measurements
        ),
    )


def leftovers(store: Store, run_id: str) -> tuple[Leftover, ...]:
    """Return the resources that a run created in its cloud and could not remove."""
    return remaining(store.folder(run_id) / JOURNAL)


def with_leftovers(store: Store, run: Run) -> Run:
    """Return a run with whether something is left in its cloud, as its journal says.

    Without its journal, on another machine or in another store, the run is as it was stored.
    """
    # A run removes things at its end, and until then only its own user can read its journal.
    contents = read(store.folder(run.run_id) / JOURNAL) if run.status != "running" else None
    if contents is None:
        return run
    has_leftovers = bool(contents.remaining)
    return replace(run, environment=replace(run.environment, has_leftovers=has_leftovers))


def left_by(location: StoreLocation, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Return those of the runs that left something in their clouds; it needs no database."""
    return tuple(
        run_id
        for run_id in dict.fromkeys(run_ids)
        if remaining(run_folder(location, run_id) / JOURNAL)
    )
