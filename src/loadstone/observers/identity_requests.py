"""Adds to each trial the requests to Keystone that it caused."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from loadstone.analysis.model import Trial
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.identity_requests import AccessLogs, MeasuredCapacity, RequestKind
from loadstone.result.listing import MeasurementSummary
from loadstone.result.model import BESIDE, LAB
from loadstone.result.observer import TrialObserver
from loadstone.store.store import Store

# Scenario of a search -> kind of its requests.
_SCENARIOS = {
    "Authenticate.keystone": RequestKind.LOGIN,
    "Keystone.validate_token": RequestKind.VALIDATION,
}
_MOST_RUNS = 200  # of the store, that are searched for an N
_OF_ONE_START = (LAB, BESIDE, "url")  # facts that differ between starts of a deployment


@dataclass(frozen=True, slots=True)
class IdentityWatch(TrialObserver):
    """Counts requests to Keystone during the load of a trial."""

    logs: AccessLogs
    capacities: tuple[MeasuredCapacity, ...]

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add the counts."""
        if trial.start_s is None:
            return trial
        # Not from the trial's start, because requests of the previous clean-up may be pending.
        stats = trial.stats
        ended_s = trial.start_s + stats.load_s
        found = self.logs.caused(trial.start_s, ended_s, stats.total.count)
        return replace(trial, identity=replace(found, capacities=self.capacities))


def capacities(store: Store, facts: Mapping[str, str]) -> tuple[MeasuredCapacity, ...]:
    """Return the newest stored N of logins and of validations for this configuration.

    Returns none while the store cannot be read: that must not end a run.
    """
    wanted = _configuration(facts)
    found: dict[RequestKind, MeasuredCapacity] = {}
    try:
        entries = store.every(_MOST_RUNS)
    except EnvironmentUnusable:
        return ()
    for entry in entries:
        if _configuration(dict(entry.configuration)) == wanted:
            for kind, rate_rps in _searched(entry.findings):
                found.setdefault(kind, MeasuredCapacity(kind, rate_rps, entry.run_id))
    return tuple(found.values())


def _searched(findings: tuple[MeasurementSummary, ...]) -> Iterator[tuple[RequestKind, float]]:
    for one in findings:
        kind = _SCENARIOS.get(one.scenario)
        if kind is not None and one.rate_rps is not None and math.isfinite(one.rate_rps):
            yield kind, one.rate_rps


def _configuration(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if name not in _OF_ONE_START}
