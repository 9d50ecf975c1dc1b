"""Values of a task file: Rally's terms, with all defaults filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.analysis.criteria import SlaRule
from loadstone.keystone.contexts.model import Context
from loadstone.plan.hooks import Hook
from loadstone.plan.json_value import Json
from loadstone.result.task_workload import TaskWorkload

if TYPE_CHECKING:
    from loadstone.result.model import Reduction

MOST_CONCURRENCY = 2**16 - 1  # the engine numbers connections with two bytes


@dataclass(frozen=True, slots=True)
class TaskScenario:
    """What one iteration runs."""

    name: str  # Rally's short name: "KeystoneBasic.create_user"
    arguments: Mapping[str, Json]  # as in the file; the catalogue has the defaults


@dataclass(frozen=True, slots=True)
class Constant:
    """Closed loop: `concurrency` at a time until `times` iterations have run."""

    times: int = 1
    concurrency: int = 1
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class ConstantForDuration:
    """Closed loop: starts iterations for `duration_s`; 0 means one per slot."""

    duration_s: float
    concurrency: int = 1
    timeout_s: float | None = 600.0


@dataclass(frozen=True, slots=True)
class Ramp:
    """A rate that increases by `step_rps` every `stage_s`, from `start_rps` to `end_rps`."""

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
    max_cpu_count: int | None = None  # of Rally's processes; None: not given


@dataclass(frozen=True, slots=True)
class Serial:
    """One iteration after the other."""

    times: int = 1


Runner = Constant | ConstantForDuration | Rps | Serial


@dataclass(frozen=True, slots=True)
class Workload:
    """A scenario with its load, contexts and criteria."""

    scenario: TaskScenario
    runner: Runner
    contexts: tuple[Context, ...]  # in the order of set-up, including implied contexts
    sla: tuple[SlaRule, ...]
    hooks: tuple[Hook, ...]
    description: str
    file: str
    line: int  # position in the file
    # As in its file, with secrets masked. It is stored, and identifies runs of the same workload.
    spec: TaskWorkload = field(default_factory=TaskWorkload)
    reduced: "tuple[Reduction, ...]" = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)  # the values that `spec` masks
    is_sla_implied: bool = False  # no sla section: Rally's default rule


@dataclass(frozen=True, slots=True)
class Subtask:
    """Workloads under one title, run one after the other."""

    title: str
    workloads: tuple[Workload, ...]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A task file."""

    title: str
    subtasks: tuple[Subtask, ...]

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads of all subtasks."""
        return tuple(one for subtask in self.subtasks for one in subtask.workloads)
