"""The configuration of a run."""

import math
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from loadstone.analysis.criteria import SlaRule
from loadstone.analysis.goal import Goal
from loadstone.engine.fleet.address import FleetAddress
from loadstone.faults.model import FaultCommands, Planned
from loadstone.faults.sentence import Fault
from loadstone.keystone.contexts.model import Context
from loadstone.plan.hooks import Hook, has_faults
from loadstone.result.model import Measurement, Tags
from loadstone.target.choice import TargetChoice
from loadstone.workload.generator import LoadGenerator
from loadstone.workload.policy import LoadPolicy

Kind = Literal["capacity", "task", "study", "demo", "compare", "fault", "hit", "tune"]
MAX_RATE_RPS = 5000.0


def new_run_id() -> str:
    """Return an id that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(3)}"


class AtCapacity(Protocol):
    """Chooses the load of a measurement once N is known."""

    def __call__(self, capacity_rps: float, *, is_lower_bound: bool = False) -> "MeasurementConfig":
        """Return the measurement whose load is a share of N, or of a lower bound of N."""


@dataclass(frozen=True, slots=True)
class MeasurementConfig:
    """One scenario under one load policy, with its criteria."""

    record: Measurement  # stored before the first trial
    generator: LoadGenerator
    policy: LoadPolicy
    heading: str  # shown when it begins
    goal: Goal | None = None  # gives each trial a verdict; None: only the criteria are judged
    criteria: tuple[SlaRule, ...] = ()
    hooks: tuple[Hook, ...] = ()
    faults: tuple[Planned, ...] = ()  # of each trial
    budget_s: float = math.inf  # of load, over all its trials
    held: Fault | None = None  # over all its trials
    is_predicted: bool = False  # N is predicted from what a request costs the service's processes
    at_capacity: "AtCapacity | None" = None  # None: its load is no share of a measured N

    @property
    def breaks(self) -> bool:
        """Whether its trials have faults."""
        return bool(self.faults) or has_faults(self.hooks)


@dataclass(frozen=True, slots=True)
class MeasurementGroup:
    """Measurements that share the resources of their contexts, one after the other."""

    measurements: tuple[MeasurementConfig, ...]
    contexts: tuple[Context, ...] = ()
    # How many of the users that exist already load is made as; 0: the target's own user; None: all.
    most_existing: int | None = None
    is_repeated: bool = False  # searches of the same N, which are combined at the end
    search_s: float = 0.0  # load time of each of these searches, without what follows N
    least_rps: float | None = None  # of the combined N; a single search has its own in its record


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The measurements of a run on one target, and the limits of their load."""

    kind: Kind
    target: TargetChoice
    groups: tuple[MeasurementGroup, ...]
    command: str  # for the record, without secrets
    title: str = ""  # of a task
    max_rate_rps: float = MAX_RATE_RPS  # iterations begun per second
    budget_s: float = math.inf  # of load, over all measurements
    aborts_on_sla_failure: bool = False
    profiles: bool = False  # workers are profiled: of a search at N, of a workload all the time
    goes_on_after_failure: bool = False  # a failed measurement does not end the run
    ends_at_broken_criteria: bool = False  # the first measurement that fails ends the run
    hook_timeout_s: float = 600.0  # for each command of a hook
    resumed_run: str | None = None  # whose users are used
    fault_commands: FaultCommands | None = None  # that carry faults out; None: on a lab
    warnings: tuple[str, ...] = ()  # are shown first
    fleet: FleetAddress | None = None  # the hosts that send the load; None: this machine
    tags: Tags = ()  # stored with the run, to find it again
    # Facts that the target must state before any load, or the beginning of their values.
    expected_facts: tuple[tuple[str, str], ...] = ()
    trace_share: float = 0.0  # of the requests, that carry a `traceparent`
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    run_id: str = field(default_factory=new_run_id)

    @property
    def has_faults(self) -> bool:
        """Whether any measurement has faults."""
        return any(one.breaks or one.held for one in self.measurements)

    @property
    def measurements(self) -> tuple[MeasurementConfig, ...]:
        """All measurements in their order."""
        return tuple(one for group in self.groups for one in group.measurements)
