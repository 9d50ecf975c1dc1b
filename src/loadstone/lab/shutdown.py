"""Stops a deployment from the state on disk, whoever started it and however that process ended."""

import shutil
import signal
from contextlib import suppress
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import processes, state


def shut_down(folder: Path) -> None:
    """Stop all processes of the deployment; remove its secrets and what a killed start left.

    The caller holds the lock.
    """
    known = None
    with suppress(EnvironmentUnusable):  # unreadable: the mark of the processes still finds them
        known = state.read(folder)
    if known is not None and known.is_of_this_boot:
        for record in reversed(known.records):
            if record.process is not None:
                processes.stop(record.process, stop_signal=signal.Signals(record.ask))
    # A process that was started just before a crash may not be recorded.
    processes.end(processes.marked(folder))
    for private in (state.secret_folder(folder), state.scratch_folder(folder)):
        shutil.rmtree(private, ignore_errors=True)
    if known is not None:
        if known.before is not None:  # a start that failed keeps none of its data elsewhere
            # Here, because the watcher of each start needs it only if the start fails.
            from loadstone.lab.keystone.database import drop_data

            drop_data(folder, known.setting("storage"), kept=known.before.setting("storage"))
        state.write(folder, known.stopped())
