"""Earlier measurements for the audit: service times for rules, and gains of fixes."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from loadstone.analysis.model import TrialState
from loadstone.cli.stored import open_to_read

if TYPE_CHECKING:
    from loadstone.audit.gain import Gain
    from loadstone.result.model import Run
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store

MOST_RUNS = 200  # the number of newest runs to search


def service_s(location: "StoreLocation", lab: str | None, run: str | None) -> float | None:
    """Return the mean service time without queueing, of a run or of the lab's newest run."""
    if run is None and lab is None:
        return None
    with open_to_read(location) as store:
        result = store.get(run) if run is not None else _newest(store, lab)
    return _lightest_s(result) if result is not None else None


def _newest(store: "Store", lab: str | None) -> "Run | None":
    from loadstone.lab.deployment import find

    url = find(str(lab)).url
    for entry in store.every(MOST_RUNS):
        if entry.target == url and entry.findings:
            run = store.get(entry.run_id)
            if _lightest_s(run) is not None:
                return run
    return None


def _lightest_s(result: "Run") -> float | None:
    """Return the mean service time at the lowest rate, where nothing queues.

    With several measurements, it is that of the slowest one. Loads with faults and above N do not
    show it.
    """
    found = []
    for one in result.measurements:
        rated = [
            t
            for t in one.trials
            if t.rate_rps is not None
            and t.stats.ok
            and t.is_valid
            and not (t.had_fault or one.held_fault)
            and t.verdict.state is not TrialState.DEGRADED
        ]
        if rated:
            found.append(min(rated, key=lambda trial: trial.rate_rps or 0.0).stats.service.mean_s)
    return max(found, default=None)


def gains(location: "StoreLocation", rules: Collection[str]) -> "dict[str, Gain]":
    """Return the gain from the newest proof of each rule, by rule id; an absent store has none."""
    from loadstone.audit.proof import AFTER, BEFORE, OF_RULE
    from loadstone.compare.measure import PAIRED, SIDE
    from loadstone.errors import EnvironmentUnusable
    from loadstone.store.store import Store

    found: dict[str, Gain] = {}
    halves: dict[str, dict[str, str]] = {}  # comparison -> side -> run
    with Store.open_to_read(location) as store:
        for run_id, parameters in store.with_parameter(OF_RULE):
            rule, sides = parameters[OF_RULE], halves.setdefault(parameters[PAIRED], {})
            sides[parameters[SIDE]] = run_id
            if rule in rules and rule not in found and sides.keys() == {BEFORE, AFTER}:
                try:
                    gain = _gain(store, store.get(sides[BEFORE]), store.get(sides[AFTER]))
                except EnvironmentUnusable as unusable:  # its samples are deleted, or it is damaged
                    click.echo(f"loadstone: a proof of {rule} is left out: {unusable}", err=True)
                    continue
                found |= {rule: gain} if gain is not None else {}
    return found


def _gain(store: "Store", before: "Run", after: "Run") -> "Gain | None":
    from loadstone.audit.gain import Gain
    from loadstone.audit.proof import OF_CHANGES, OF_DEPLOYMENT
    from loadstone.compare.answer import ComparisonAnswer, Criteria
    from loadstone.compare.pairs import deciding
    from loadstone.compare.stored import compare_runs
    from loadstone.errors import InvalidInput

    try:
        found = compare_runs(before, after, Criteria(), store.samples)
    except InvalidInput:
        return None  # without usable trials
    if found.broken_off:
        return None
    [(title, rows)] = found.metrics
    row, parameters = deciding(rows), dict(before.measurements[0].parameters)
    return Gain(
        metric=row.metric.name,
        scenario=title,
        changes=parameters[OF_CHANGES],
        ratio=row.ratio,
        low=row.low,
        high=row.high,
        pairs=row.pairs,
        is_sure=row.answer is not ComparisonAnswer.UNKNOWN,
        measured_on=before.started_at[:10],
        deployment=parameters[OF_DEPLOYMENT],
        runs=(before.run_id, after.run_id),
    )
