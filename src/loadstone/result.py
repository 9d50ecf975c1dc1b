"""What is kept of a run: the values that the store keeps and the reports show."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from loadstone.analysis.model import Stats, Trial
from loadstone.analysis.sla import Check
from loadstone.engine.callables.model import IterationOutput
from loadstone.engine.health import Health
from loadstone.findings import AuditFinding
from loadstone.monitor.prediction import LowLoadFigures, Prediction, cpu_s, predict
from loadstone.monitor.resources import Resources
from loadstone.monitor.usage import Usage
from loadstone.plan.hooks import HookRun
from loadstone.search.low_load import of_low_load, of_requests_alone
from loadstone.search.model import Capacity

LEAST_S = 4.0  # of a trial whose resources are shown, where there is one
Policy = Literal["search", "fixed", "prediction", "steps"]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A setting of the file that --at-most reduced."""

    setting: str  # Rally's name: "times"
    asked: float  # in the file
    made: float


def config_id(spec: Mapping[str, Any]) -> str:
    """Return an id of a workload's load. Those that differ only in their SLA have the same id."""
    load = {key: spec.get(key) or {} for key in ("scenario", "runner", "contexts", "hooks")}
    text = json.dumps(load, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One scenario under one load policy, with the trials that were made of it."""

    scenario: str  # Rally's name where Rally has one
    title: str  # "token issue"
    request: str = ""  # "POST /v3/auth/tokens (password, project scope)"
    # "fixed": one load; "prediction": a low load; "steps": loads that rise until a limit
    policy: Policy = "search"
    status: str = "running"  # "finished", "aborted" (by its SLA), "interrupted", "failed"
    failure: str | None = None  # the one line that ended it early
    # None: interrupted or invalid before a number was found, or none was searched for
    capacity: Capacity | None = None
    trials: tuple[Trial, ...] = ()
    wall_s: float = 0.0  # with set-up and clean-up
    notes: tuple[str, ...] = ()  # what the figures show, in words
    parameters: tuple[tuple[str, str], ...] = ()  # users, budget, method: ready to be shown
    subtask: str = ""  # of a task
    description: str = ""
    # Of a task's workload: JSON in Rally's format (scenario, runner, contexts, sla, hooks);
    # passwords masked.
    spec: str = ""
    reduced: tuple[Reduction, ...] = ()  # what the file asks for and was not made
    requests_as_rally: bool = False  # iterations sent all that Rally sends
    least_rps: float | None = None  # N below this falls short (`--fail-below`)

    @property
    def load_s(self) -> float:
        """The duration of its loads."""
        return sum(trial.stats.load_s for trial in self.trials)

    @property
    def config_id(self) -> str:
        """The same for workloads of the same load, whatever their SLA."""
        return config_id(json.loads(self.spec)) if self.spec else ""

    @property
    def trial(self) -> Trial | None:
        """Its only trial, or the first one; None: no load was made."""
        return self.trials[0] if self.trials else None

    @property
    def stats(self) -> Stats | None:
        """The statistics of its only trial."""
        return self.trial.stats if self.trial else None

    @property
    def health(self) -> Health | None:
        """The load generator's health in its only trial."""
        return self.trial.health if self.trial else None

    @property
    def usage(self) -> Usage | None:
        """The CPU usage of its only trial."""
        return self.trial.usage if self.trial else None

    @property
    def start_s(self) -> float | None:
        """Unix time of its first load's start."""
        return self.trial.start_s if self.trial else None

    @property
    def outputs(self) -> tuple[IterationOutput, ...]:
        """Charts that its iterations gave."""
        return tuple(output for trial in self.trials for output in trial.outputs)

    @property
    def outputs_dropped(self) -> int:
        """Charts that there was no room for."""
        return sum(trial.outputs_dropped for trial in self.trials)

    @property
    def hook_runs(self) -> tuple[HookRun, ...]:
        """What its hooks did."""
        return tuple(run for trial in self.trials for run in trial.hook_runs)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The results of its criteria; what kept a workload from being measured is a row, too."""
        found = tuple(check for trial in self.trials for check in trial.checks)
        if self.failure is None or not self.spec:
            return found
        return (*found, Check("something_went_wrong", False, self.failure))  # Rally's own name

    @property
    def checks_passed(self) -> bool:
        """Whether all that had to hold held."""
        return all(check.success for check in self.checks)

    @property
    def cpu_per_request_s(self) -> float | None:
        """The service's CPU seconds per request, over the valid trials without a failure."""
        cpu_s, done = 0.0, 0
        for trial in self.trials:
            if trial.usage is None or trial.usage.service_cpu_s is None:
                continue
            if trial.is_valid and not trial.stats.failed:
                cpu_s += trial.usage.service_cpu_s
                done += trial.stats.ok
        return cpu_s / done if done and cpu_s > 0 else None

    @property
    def resources(self) -> Resources | None:
        """Use of resources in the trial that shows the limit: the one with the highest rate."""
        found = [one for one in self.trials if one.resources is not None]
        # A profiler beside them would be taken for other work.
        found = [one for one in found if one.profile is None] or found
        valid = [one for one in found if one.is_valid] or found
        # In a short trial too few requests end for their rate to be known.
        long = [one for one in valid if one.stats.load_s >= LEAST_S] or valid
        shown = max(long, key=lambda one: one.stats.throughput_rps, default=None)
        return shown.resources if shown else None

    @property
    def profiled(self) -> Trial | None:
        """The trial during which the workers were profiled; None: there was none."""
        return next((trial for trial in self.trials if trial.profile is not None), None)

    @property
    def prediction(self) -> Prediction | None:
        """Capacity as predicted from its trial at low load; None: none was made or watched."""
        trial = of_low_load(self.trials)
        if trial is None or trial.resources is None:
            return None
        alone = of_requests_alone(self.trials) or trial
        times, watched = alone.stats.service, alone.resources
        # Of a normal distribution the 95th percentile lies 1.645 deviations above the median.
        spread_s = max(times.p95_s - times.median_s, 0.0) / 1.645
        used_s = cpu_s(watched.observation) if watched else None
        figures = LowLoadFigures(times.mean_s, spread_s, used_s)
        return predict(trial.resources.observation, figures)

    @property
    def each(self) -> tuple["Measurement", ...]:
        """A workload's steps as measurements of one trial each; anything else alone."""
        if self.policy != "steps":
            return (self,)
        steps = tuple(self.step(trial) for trial in self.trials)
        if steps and steps[-1].status == self.status:
            return (*steps[:-1], replace(steps[-1], failure=self.failure))
        if steps and self.status in ("finished", "aborted"):
            return steps
        return (*steps, replace(self, trials=()))  # the step that did not come to its load

    def step(self, trial: Trial) -> "Measurement":
        """Return one step of a workload as a measurement of that trial alone."""
        spec = json.loads(self.spec) | {"runner": json.loads(trial.runner)}
        return replace(
            self,
            trials=(trial,),
            spec=json.dumps(spec),
            status=trial.status,
            wall_s=trial.wall_s,
            failure=None,
        )


LAB = "lab"  # of the target: the name of a deployment, whose URL may change
LAB_HOST = "lab host"  # of the target: the host of a fleet that it is on
OF_LAB_HOST = "lab host's "  # of the target: what that host's machine is
BESIDE = "measured beside"  # of the target: other measurements that were at work on it meanwhile


@dataclass(frozen=True, slots=True)
class Environment:
    """What was measured, on what: (name, value) pairs, ready to be shown."""

    machine: tuple[tuple[str, str], ...]  # cores, memory, kernel, python, loadstone
    target: tuple[tuple[str, str], ...]  # url, web server, workers, database, cache, release
    facts: tuple[tuple[str, str], ...] = ()  # of the audit: how the service was set up
    audit: tuple[AuditFinding, ...] = ()  # what the audit makes of them, the most severe first

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """All of it, as results are compared by."""
        return (*self.target, *self.machine, *self.facts)


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation of Loadstone on one target. Holds no secret."""

    run_id: str  # "20261121-0931-ab12cd", sorts by time
    kind: str  # "capacity", "demo", "study", "task"
    status: str  # "running", "finished", "interrupted", "failed"
    started_at: str  # ISO 8601, UTC
    ended_at: str | None
    measurements: tuple[Measurement, ...]
    environment: Environment
    command: str  # the command line, for the record
    failure: str | None = None  # the one line that ended it early
    title: str = ""  # of a task

    @property
    def searches(self) -> tuple[Measurement, ...]:
        """Its searches, and fixed loads that are not of a task."""
        return tuple(one for one in self.measurements if not one.spec)

    @property
    def workloads(self) -> tuple[Measurement, ...]:
        """A task's workloads, each of their steps by itself."""
        return tuple(one for whole in self.measurements if whole.spec for one in whole.each)


@dataclass(frozen=True, slots=True)
class PastSearch:
    """A search for N in the history of a target."""

    run_id: str
    started_at: str  # ISO 8601, UTC
    scenario: str
    title: str
    parameters: tuple[tuple[str, str], ...]
    capacity: Capacity | None
    environment: Environment
