"""What the user asks for, as values: all words are Rally's, all defaults are filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one iteration does."""

    name: str  # Rally's short name: "KeystoneBasic.create_user"
    arguments: Mapping[str, Json]  # as given; the catalogue knows the defaults


@dataclass(frozen=True, slots=True)
class Constant:
    """Closed loop: `concurrency` at a time until `times` iterations were made."""

    times: int = 1
    concurrency: int = 1
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class ConstantForDuration:
    """Closed loop: starts iterations for `duration_s`; 0 means one for each slot."""

    duration_s: float
    concurrency: int = 1
    timeout_s: float | None = 600.0


@dataclass(frozen=True, slots=True)
class Ramp:
    """A rate that rises by `step_rps` each `stage_s`, from `start_rps` to `end_rps`."""

    start_rps: float
    end_rps: float
    step_rps: float
    stage_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Rps:
    """Open loop: `times` iterations at a rate."""

    times: int
    rate: float | Ramp
    timeout_s: float | None = None
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Serial:
    """One iteration after the other."""

    times: int = 1


Runner = Constant | ConstantForDuration | Rps | Serial


@dataclass(frozen=True, slots=True)
class Users:
    """Temporary projects and users, or the target's own."""

    tenants: int = 1
    users_per_tenant: int = 1
    password: str | None = field(default=None, repr=False)  # None: a random one for each user
    workers: int = 20  # how many are made at once
    project_domain: str | None = None  # None: the admin's own, else "default"
    user_domain: str | None = None
    choice: Literal["random", "round_robin"] = "random"
    may_be_existing: bool = False  # the file gives no more than the choice


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles that all users get in their project."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quotas:
    """Quotas of services, for each project: service -> resource -> limit."""

    limits: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """Which version of a service's API, under which name in the catalog."""

    client: str
    version: str | None = None
    service_type: str | None = None
    service_name: str | None = None


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """The API versions that clients speak."""

    clients: tuple[ApiVersion, ...]


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Remove what iterations left in these services, as the users or as the admin."""

    services: tuple[str, ...]
    as_admin: bool


@dataclass(frozen=True, slots=True)
class DummyContext:
    """A context that does nothing, or fails when asked to."""

    fail_setup: bool = False
    fail_cleanup: bool = False


Context = Users | Roles | Quotas | ApiVersions | Cleanup | DummyContext


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Share of failed iterations in %: min <= rate <= max, after every iteration."""

    min_percent: float = 0.0
    max_percent: float = 100.0


@dataclass(frozen=True, slots=True)
class MaxSecondsPerIteration:
    """No iteration, failed or not, takes longer."""

    max_s: float


@dataclass(frozen=True, slots=True)
class MaxAvgDuration:
    """Mean duration of the successful iterations."""

    max_s: float


@dataclass(frozen=True, slots=True)
class MaxAvgDurationPerAtomic:
    """Mean duration of each named action in successful iterations."""

    max_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Outliers:
    """How many iterations may exceed the running mean by `sigmas` standard deviations."""

    max_count: int = 0
    min_iterations: int = 3
    sigmas: float = 3.0


@dataclass(frozen=True, slots=True)
class PerformanceDegradation:
    """(slowest / fastest - 1) in % over the successful iterations."""

    max_percent: float


@dataclass(frozen=True, slots=True)
class MaxPercentiles:
    """Percentile -> seconds, over the successful iterations. Not in Rally."""

    max_s: Mapping[float, float]


@dataclass(frozen=True, slots=True)
class MinThroughput:
    """Successful iterations per second of load. Not in Rally."""

    min_rps: float


@dataclass(frozen=True, slots=True)
class MinIterations:
    """Successful iterations below which nothing is proved. Not in Rally."""

    count: int


SlaRule = (
    FailureRate
    | MaxSecondsPerIteration
    | MaxAvgDuration
    | MaxAvgDurationPerAtomic
    | Outliers
    | PerformanceDegradation
    | MaxPercentiles
    | MinThroughput
    | MinIterations
)


@dataclass(frozen=True, slots=True)
class SysCall:
    """A program and its arguments, started without a shell."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """At these seconds after the load's start, or at these iterations (from 1)."""

    unit: Literal["time", "iteration"]
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Periodic:
    """From `start` to `end` (None: to the end of the load), each `step`."""

    unit: Literal["time", "iteration"]
    step: int
    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Hook:
    """What is done in mid-load, and when."""

    action: SysCall
    trigger: Event | Periodic
    description: str = ""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A setting of the file's that was made smaller from outside."""

    setting: str  # Rally's name: "times"
    asked: float  # by the file
    made: float


@dataclass(frozen=True, slots=True)
class Workload:
    """Scenario, how hard, what must exist first, what must hold."""

    scenario: Scenario
    runner: Runner
    contexts: tuple[
        Context, ...
    ]  # in the order of set-up; those that the scenario implies included
    sla: tuple[SlaRule, ...]
    hooks: tuple[Hook, ...]
    description: str
    file: str
    line: int  # where the workload stands
    # As the file has it, in Rally's words of version 2 (scenario, runner, contexts, sla, hooks),
    # passwords masked: what is kept of it, and by what runs of the same workload are found.
    given: Mapping[str, Json] = field(default_factory=dict)
    reduced: tuple[Reduction, ...] = ()


@dataclass(frozen=True, slots=True)
class Subtask:
    """Workloads under one title, run one after the other."""

    title: str
    workloads: tuple[Workload, ...]
    description: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task file."""

    title: str
    subtasks: tuple[Subtask, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
