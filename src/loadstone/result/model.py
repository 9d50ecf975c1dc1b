"""The result of a run, as stored and shown in reports."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from loadstone.analysis.model import Stats, Trial
from loadstone.analysis.sla import Check
from loadstone.diagnosis.finding import AuditFinding
from loadstone.diagnosis.prediction import LowLoadFigures, Prediction, cpu_s, predict
from loadstone.diagnosis.resources import Resources
from loadstone.engine.callables.model import IterationOutput
from loadstone.engine.health import Health
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.usage import Usage
from loadstone.plan.hooks import HookRun
from loadstone.result.task_workload import TaskWorkload
from loadstone.search.low_load import of_low_load, of_requests_alone
from loadstone.search.model import Capacity

LEAST_S = 4.0  # shortest trial to show resources of, if there is a longer one
Policy = Literal["search", "fixed", "prediction", "steps", "turns"]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A setting of a task file that --at-most reduced."""

    setting: str  # Rally's name: "times"
    asked: float  # in the file
    made: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """One scenario under one load policy, with its trials."""

    scenario: str  # Rally's name where Rally has one
    title: str  # "token issue"
    request: str = ""  # "POST /v3/auth/tokens (password, project scope)"
    # "fixed": one load; "prediction": a low load; "steps": loads that rise until a limit;
    # "turns": loads that take turns with those of another target
    policy: Policy = "search"
    status: str = "running"  # "finished", "aborted" (by its SLA), "interrupted", "failed"
    failure: str | None = None  # the one line that ended it early
    failure_code: int = EnvironmentUnusable.exit_code
    # None: no search, or one that was interrupted or invalid before it saw anything of N
    capacity: Capacity | None = None
    trials: tuple[Trial, ...] = ()
    wall_s: float = 0.0  # with set-up and clean-up
    notes: tuple[str, ...] = ()  # sentences about the figures
    parameters: tuple[tuple[str, str], ...] = ()  # users, budget, method, formatted for display
    subtask: str = ""  # of a task
    begins_subtask: bool = False  # the subtask before may have the same title
    subtask_description: str = ""
    description: str = ""
    workload: TaskWorkload | None = None  # None: not of a task
    reduced: tuple[Reduction, ...] = ()  # settings of the file that were reduced
    requests_as_rally: bool = False  # whether iterations sent every request that Rally sends
    paced_as_rally: bool = False  # whether an rps runner kept its rate as Rally does
    least_rps: float | None = None  # N below this falls short (`--fail-below`)
    is_repeat: bool = False  # one of several searches, which are judged as combined
    accepts_range: bool = False  # whether a range of N is an answer
    held_fault: str = ""  # the fault that was in force during all its trials

    @property
    def has_ended(self) -> bool:
        """Whether it was carried out to its end, or its SLA ended it; else it may be killed."""
        return self.status not in ("running", "interrupted")

    @property
    def load_s(self) -> float:
        """The duration of its loads."""
        return sum(trial.stats.load_s for trial in self.trials)

    @property
    def config_id(self) -> str:
        """Id of the load, without the SLA; equal for workloads with the same load."""
        if self.workload is None:
            return ""
        return self.workload.config_id(
            requests_as_rally=self.requests_as_rally, paced_as_rally=self.paced_as_rally
        )

    @property
    def trial(self) -> Trial | None:
        """Its only or first trial; None without a load."""
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
        """Charts that its iterations produced."""
        return tuple(output for trial in self.trials for output in trial.outputs)

    @property
    def outputs_dropped(self) -> int:
        """Number of charts beyond the limit, which were dropped."""
        return sum(trial.outputs_dropped for trial in self.trials)

    @property
    def hook_runs(self) -> tuple[HookRun, ...]:
        """Runs of its hooks."""
        return tuple(run for trial in self.trials for run in trial.hook_runs)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The results of its criteria, with a row for a failure that prevented the measurement.

        None of a search, whose trials fail them above N: each trial has its own.
        """
        if self.policy in ("search", "prediction"):
            return ()
        found = tuple(check for trial in self.trials for check in trial.checks)
        if self.failure is None or self.workload is None:
            return found
        return (*found, Check("something_went_wrong", False, self.failure))  # Rally's name

    @property
    def checks_passed(self) -> bool:
        """Whether all criteria held."""
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
        """Use of resources in the trial that shows the limit, the one with the highest rate."""
        found = [one for one in self.trials if one.resources is not None]
        # Without profiled trials, as the profiler would count as other work.
        found = [one for one in found if one.profile is None] or found
        valid = [one for one in found if one.is_valid] or found
        # A short trial has too few requests for a reliable rate.
        long = [one for one in valid if one.stats.load_s >= LEAST_S] or valid
        shown = max(long, key=lambda one: one.stats.throughput_rps, default=None)
        return shown.resources if shown else None

    @property
    def profiled(self) -> Trial | None:
        """The trial during which the workers were profiled; None without one."""
        return next((trial for trial in self.trials if trial.profile is not None), None)

    @property
    def prediction(self) -> Prediction | None:
        """Capacity as predicted from its trial at low load; None without a monitored one."""
        trial = of_low_load(self.trials)
        if trial is None or trial.resources is None:
            return None
        alone = of_requests_alone(self.trials) or trial
        times, watched = alone.stats.service, alone.resources
        # The 95th percentile of a normal distribution is 1.645 deviations above the median.
        spread_s = max(times.p95_s - times.median_s, 0.0) / 1.645
        used_s = cpu_s(watched.observation) if watched else None
        figures = LowLoadFigures(times.mean_s, spread_s, used_s)
        return predict(trial.resources.observation, figures)

    @property
    def each(self) -> tuple["Measurement", ...]:
        """A workload's steps as measurements of one trial each; otherwise only this measurement."""
        if self.policy != "steps":
            return (self,)
        steps = tuple(self.step(trial) for trial in self.trials)
        if steps and steps[-1].status == self.status:
            return (*steps[:-1], replace(steps[-1], failure=self.failure))
        if steps and self.status in ("finished", "aborted"):
            return steps
        # The step that ended before its load.
        is_first = self.begins_subtask and not steps
        return (*steps, replace(self, trials=(), begins_subtask=is_first))

    def step(self, trial: Trial) -> "Measurement":
        """Return one step of a workload as a measurement with only that trial."""
        return replace(
            self,
            trials=(trial,),
            begins_subtask=self.begins_subtask and trial is self.trials[0],
            workload=(self.workload or TaskWorkload()).at(trial.runner or {}),
            status=trial.status,
            wall_s=trial.wall_s,
            failure=None,
        )


LAB = "lab"  # fact of the target: name of the deployment, as its URL may change
LAB_HOST = "lab host"  # fact of the target: the host of a fleet that it is on
OF_LAB_HOST = "lab host's "  # prefix of facts about that host's machine
WARM_UP = "warm-up"  # purpose of the first trial after a start, which is not compared
TAG = "tag "  # prefix of the facts that --tag gave
BESIDE = "measured beside"  # fact of the target: other measurements on it at the same time


Tags = tuple[tuple[str, str], ...]


def tags_of(facts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the tags among facts of a target."""
    return {name.removeprefix(TAG): value for name, value in facts if name.startswith(TAG)}


@dataclass(frozen=True, slots=True)
class Environment:
    """Machine and target of a run as (name, value) pairs, formatted for display."""

    machine: tuple[tuple[str, str], ...]  # cores, memory, kernel, python, loadstone
    target: tuple[tuple[str, str], ...]  # url, web server, workers, database, cache, release
    facts: tuple[tuple[str, str], ...] = ()  # of the audit: configuration of the service
    audit: tuple[AuditFinding, ...] = ()  # findings of the audit about the facts, most severe first
    has_leftovers: bool = False  # at its end, resources that the run created were in its cloud

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """All pairs, for comparing results."""
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
    def workloads(self) -> tuple[Measurement, ...]:
        """A task's workloads; each step is a measurement of its own."""
        return tuple(one for whole in self.measurements if whole.workload for one in whole.each)


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
