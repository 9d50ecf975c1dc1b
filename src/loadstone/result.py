"""What is kept of a measurement: the value that the store keeps and the reports show."""

from dataclasses import dataclass

from loadstone.analysis.model import Trial
from loadstone.analysis.performance import Showing
from loadstone.engine.callables.model import Output
from loadstone.engine.health import Health
from loadstone.search.model import Capacity
from loadstone.task.hook_run import HookRun
from loadstone.task.model import Reduction
from loadstone.task.sla import Criterion


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one workload: its capacity, and the trials that it rests on."""

    scenario: str  # Rally's name where Rally has one
    title: str  # "token issue"
    request: str  # "POST /v3/auth/tokens (password, project scope)"
    # None: interrupted or invalid before a number was found, or none was searched for
    capacity: Capacity | None
    trials: tuple[Trial, ...]
    load_s: float
    wall_s: float
    notes: tuple[str, ...] = ()  # what the figures show, in words
    parameters: tuple[tuple[str, str], ...] = ()  # users, budget, method: ready to be shown
    is_search: bool = True  # False: one stretch of load, as it was ordered

    @property
    def cpu_per_request_s(self) -> float | None:
        """The service's CPU seconds per request, over the valid trials without a failure."""
        cpu_s, done = 0.0, 0
        for trial in self.trials:
            if trial.usage is None or trial.usage.service_cpu_s is None:
                continue
            if trial.health.is_valid and not trial.summary.failed:
                cpu_s += trial.usage.service_cpu_s
                done += trial.summary.ok
        return cpu_s / done if done and cpu_s > 0 else None


@dataclass(frozen=True, slots=True)
class Performance:
    """One workload of a task as it was performed."""

    subtask: str
    scenario: str  # Rally's short name
    description: str
    given: str  # JSON, Rally's words: scenario, runner, contexts, sla, hooks; passwords masked
    config_id: str  # the same for workloads of the same load, whatever their SLA
    status: str  # "running", "finished", "aborted" (by its SLA), "interrupted", "failed"
    start_s: float | None = None  # Unix time of the load's start
    full_s: float = 0.0  # contexts included
    showing: Showing | None = None  # None: no iteration ended
    sla: tuple[Criterion, ...] = ()
    health: Health | None = None  # None: another tool's
    actions: tuple[str, ...] = ()  # names, by the samples' action
    samples_file: str | None = None  # relative to the run's folder in the store
    failure: str | None = None  # the one line that ended it early
    requests_as_rally: bool = False  # iterations sent all that Rally sends
    is_step: bool = False  # of a workload that is repeated at rising load
    hook_runs: tuple[HookRun, ...] = ()
    reduced: tuple[Reduction, ...] = ()  # what the file asks for and was not made
    outputs: tuple[Output, ...] = ()  # charts that iterations gave
    outputs_dropped: int = 0  # charts that there was no room for

    @property
    def pass_sla(self) -> bool:
        """Whether all that had to hold held."""
        return all(row.success for row in self.sla)


@dataclass(frozen=True, slots=True)
class Environment:
    """What was measured, on what: (name, value) pairs, ready to be shown."""

    machine: tuple[tuple[str, str], ...]  # cores, memory, kernel, python, loadstone
    target: tuple[tuple[str, str], ...]  # url, web server, workers, database, cache, release


@dataclass(frozen=True, slots=True)
class Result:
    """One run of Loadstone. Holds no secret."""

    run_id: str  # "20261121-0931-ab12cd", sorts by time
    kind: str  # "capacity", "demo", "study", "task"
    status: str  # "running", "finished", "interrupted", "failed"
    started_at: str  # ISO 8601, UTC
    ended_at: str | None
    findings: tuple[Finding, ...]
    environment: Environment
    command: str  # the command line, for the record
    failure: str | None = None  # the one line that ended it early
    performances: tuple[Performance, ...] = ()  # of a task's workloads
    title: str = ""  # of a task


@dataclass(frozen=True, slots=True)
class Found:
    """One workload's capacity in a list of runs."""

    scenario: str
    title: str
    rate_rps: float | None
    low_rps: float | None
    high_rps: float | None
    stretch_rps: float | None = None  # throughput of one stretch of load, where no N was sought


@dataclass(frozen=True, slots=True)
class Entry:
    """One run in a list of runs."""

    run_id: str
    kind: str
    status: str
    started_at: str
    ended_at: str | None
    findings: tuple[Found, ...]
    trials: int
    performed: tuple["Performed", ...] = ()


@dataclass(frozen=True, slots=True)
class Performed:
    """One performed workload in a list of runs: durations of the iterations that ended well."""

    run_id: str
    position: int  # in its run, from 0
    scenario: str
    config_id: str
    started_at: str  # ISO 8601, UTC
    status: str
    count: int  # iterations that ended
    ok: int
    min_s: float | None
    median_s: float | None
    p90_s: float | None
    p95_s: float | None
    max_s: float | None
    mean_s: float | None
    pass_sla: bool
