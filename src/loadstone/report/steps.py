"""The curve of a workload that was repeated at rising load."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.table import Table

from loadstone.report import figures
from loadstone.report.workload import cells
from loadstone.result import Performance


def curves(performances: Sequence[Performance]) -> Iterator[Table]:
    """Give a table for each workload that was repeated, a row for each step."""
    own = (one for one in performances if one.is_step and one.showing is not None)
    for (scenario, _), steps in groupby(own, lambda one: (one.scenario, one.subtask)):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"Steps of {scenario}")
        table.add_column("runner", overflow="fold")
        for head in ("per s", "median", "95%ile", "99%ile", "success"):
            table.add_column(head, justify="right", no_wrap=True)
        for one in steps:
            if one.showing is None:
                continue
            _, median, _, p95, p99, _, _, success, _ = cells(one.showing.total)
            rate = figures.rate(one.showing.throughput_rps)
            table.add_row(_runner(one), rate, median, p95, p99, success)
        yield table


def _runner(performance: Performance) -> str:
    ((name, settings),) = json.loads(performance.given)["runner"].items()
    said = ", ".join(f"{key} {value}" for key, value in (settings or {}).items())
    return f"{name}: {said}"
