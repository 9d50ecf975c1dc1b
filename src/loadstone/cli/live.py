"""`loadstone live`: the page of a run that another command measures."""

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from loadstone.cli.stored import STORE, open_to_read
from loadstone.cli.watching import listening_options, live_page
from loadstone.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.section import Report
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store

LOOK_EVERY_S = 2.0


@click.command()
@click.argument("run", metavar="[RUN]", default="latest")
@listening_options
@STORE
def live(run: str, location: "StoreLocation") -> None:
    """Serve a page with the results of RUN (an id, the beginning of one, or "latest").

    The page shows each trial as soon as it is stored. When the run is over, it shows the report,
    and this command ends. The load in progress is on the page of the measuring command (--live).
    """
    with open_to_read(location) as store:
        found = store.get(run)
        run_id = found.run_id
        if found.status != "running":
            raise InvalidInput(
                f"run {run_id} has ended ({found.status}); "
                f"`loadstone report {run_id}{location.option}` writes its page"
            )
        page = live_page(partial(_reports, store, run_id), stop=None)
        try:
            while store.get(run_id).status == "running":
                time.sleep(LOOK_EVERY_S)
        finally:
            page.close()


def _reports(store: "Store", run_id: str, *, is_over: bool) -> "Sequence[Report]":
    from loadstone.cli.report import reports_of

    return reports_of(store, (run_id,), reads_samples=is_over)
