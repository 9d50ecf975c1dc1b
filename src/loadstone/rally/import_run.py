"""Imports runs exported by another store or measured by Rally."""

import io
import json
from pathlib import Path
from zipfile import is_zipfile

from loadstone.errors import EnvironmentUnusable
from loadstone.rally import results
from loadstone.report import junit, openmetrics, terminal
from loadstone.report.console import console
from loadstone.report.data import as_data
from loadstone.report.sections.run import report_of
from loadstone.result.model import Run
from loadstone.store import bundle
from loadstone.store.store import Store
from loadstone.system.say import Say


def import_file(store: Store, path: Path, say: Say = lambda _line: None) -> tuple[str, ...]:
    """Import a bundle or a file of Rally's results; return the run ids.

    Parts that are damaged, and tasks that are in the store already, are left out; `say` gets a line
    for each.
    """
    try:
        is_bundle = is_zipfile(path)
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot read {path}: {problem.strerror}") from problem
    if is_bundle:
        return (bundle.import_run(store, path, say, require_showable),)
    return results.import_file(store, path, say, require_showable)


def require_showable(run: Run) -> None:
    """Raise ValueError if a run cannot be shown, so that no later command fails with it."""
    try:
        report = report_of(run)
        json.dumps(as_data(report), allow_nan=False)
        terminal.show(report, console(io.StringIO(), width=200))
        terminal.show_in_full(report, console(io.StringIO(), width=200))
        junit.render(report)
        openmetrics.render(run)
    except Exception as problem:  # the run is not ours: whatever fails is its contents
        raise ValueError(f"it cannot be shown ({type(problem).__name__}: {problem})") from problem
