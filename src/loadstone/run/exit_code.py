"""The exit code of a run: the table in docs/methodology.md, "Exit codes"."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from loadstone.keystone.clean import remaining
from loadstone.keystone.journal import JOURNAL
from loadstone.keystone.resources import Leftover
from loadstone.result import outcome
from loadstone.result.model import Run
from loadstone.store.location import StoreLocation
from loadstone.store.store import Store, run_folder


def exit_code(run: Run, left: Sequence[Leftover] = ()) -> int:
    """Return 0 if all criteria held and all created resources are removed, else the worst code."""
    return outcome.exit_code(run, is_clean=not left)


def accepting_ranges(run: Run) -> Run:
    """Return a run in which an interval that is too wide for a number is an answer, too.

    For where the measurements of several runs are combined, or where the range itself is what was
    asked for.
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


def left_by(location: StoreLocation, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Return those of the runs that left something in their clouds; it needs no database."""
    return tuple(
        run_id
        for run_id in dict.fromkeys(run_ids)
        if remaining(run_folder(location, run_id) / JOURNAL)
    )
