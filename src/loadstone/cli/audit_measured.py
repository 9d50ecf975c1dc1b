"""What Loadstone measured of a target before, for rules that compute with it."""

from typing import TYPE_CHECKING

from loadstone.cli.stored import open_to_read

if TYPE_CHECKING:
    from loadstone.result import Run
    from loadstone.store import Store
    from loadstone.store.location import StoreLocation

MOST_RUNS = 200  # the newest ones are looked through


def service_s(location: "StoreLocation", lab: str | None, run: str | None) -> float | None:
    """Return the mean service time without queueing, of a run or of the lab's newest run."""
    if run is None and lab is None:
        return None
    with open_to_read(location) as store:
        result = store.get(run) if run is not None else _newest(store, lab)
    return _lightest_s(result) if result is not None else None


def _newest(store: "Store", lab: str | None) -> "Run | None":
    from loadstone.keystone.deployment import find

    url = find(str(lab)).url
    for entry in store.every(MOST_RUNS):
        if entry.target == url and entry.findings:
            return store.get(entry.run_id)
    return None


def _lightest_s(result: "Run") -> float | None:
    """Return the mean service time at the lowest rate, where nothing queues.

    Of a run with several measurements it is that of the slowest one.
    """
    found = []
    for one in result.measurements:
        rated = [t for t in one.trials if t.rate_rps is not None and t.stats.ok]
        if rated:
            found.append(min(rated, key=lambda trial: trial.rate_rps or 0.0).stats.service.mean_s)
    return max(found, default=None)
