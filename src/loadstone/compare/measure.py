"""Measures two targets in pairs: one run for each, with interleaved trials.

The n-th usable trials of both runs are the n-th pair, so that a stored comparison can be
reproduced.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from loadstone.analysis.model import Trial
from loadstone.compare.answer import Criteria
from loadstone.compare.memory import memory_mb
from loadstone.compare.pairs import MOST_INVALID, PairComparison, in_pairs, is_answered
from loadstone.engine.fleet.address import FleetAddress
from loadstone.faults.pending import undone_target
from loadstone.keystone.target import Target, TargetChoice
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.result.model import Measurement, Run, Tags
from loadstone.result.observer import Display
from loadstone.run.backend import REAL, Backend
from loadstone.run.flow import hidden, run_on
from loadstone.search.model import Measure, TrialRequest
from loadstone.store.store import Store
from loadstone.system.redaction import secrets_of_environment
from loadstone.workload.model import MeasurementConfig, MeasurementGroup, RunConfig
from loadstone.workload.policy import Interleaved
from loadstone.workload.searchable import Searchable

PAIRED = "comparison"  # parameter: the label that both runs of a comparison share
SIDE = "side"  # parameter: the name of the run's side
ROLE = "compared as"  # parameter: "A" or "B"
MOST_PAIRS = "pairs at most"  # parameter: the error rate is spent over this number of pairs
SAME_WITHIN = "same within"  # parameter: ratios this close to 1 count as equal
MOST_SLOWER = "slower at most"  # parameter: limit of --fail-if-slower


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two targets."""

    name: str
    target: TargetChoice


@dataclass(frozen=True, slots=True)
class ComparisonConfig:
    """Sides, load and criteria of a comparison."""

    sides: tuple[Side, Side]
    searched: Searchable
    load: ClosedLoad | OpenLoad  # of a trial
    criteria: Criteria
    command: str  # for the record, without secrets
    most_slower: float | None = None  # limit of --fail-if-slower; None: look for any difference
    placement: Placement = field(default_factory=Placement)
    fleet: FleetAddress | None = None  # the hosts that send the load; None: this machine
    tags: Tags = ()  # of both runs
    parameters: tuple[
        tuple[str, str], ...
    ] = ()  # stored with both runs: the origin of the comparison
    label: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def is_paced(self) -> bool:
        """Whether iterations are due at a rate."""
        return not isinstance(self.load, ClosedLoad)

    @property
    def guard(self) -> tuple[tuple[str, str], ...]:
        """The limit of --fail-if-slower as a parameter."""
        return () if self.most_slower is None else ((MOST_SLOWER, f"{self.most_slower:g}"),)

    @property
    def load_words(self) -> str:
        """Description of a trial's load."""
        if isinstance(self.load, ClosedLoad):
            return f"{self.load.workers} in flight for {self.load.duration_s:g} s"
        return f"{self.load.rate_rps:g}/s for {self.load.duration_s:g} s"


@dataclass(frozen=True, slots=True)
class MeasuredComparison:
    """A comparison with its two runs."""

    comparison: PairComparison
    runs: tuple[Run, Run]
    memory_mb: tuple[float | None, float | None]  # of the services, after the last pair


def run_config(
    config: ComparisonConfig, number: int, carry: Callable[[Measure], None]
) -> RunConfig:
    """Return the run of one side; `carry` decides when each of its trials runs."""
    side, searched = config.sides[number], config.searched
    scenario = searched.scenario
    limits = Limits()
    if isinstance(config.load, ClosedLoad):
        limits = Limits(max_connections=config.load.workers)
    record = Measurement(
        scenario=scenario.name,
        title=scenario.title,
        request=scenario.request,
        policy="fixed",
        parameters=(
            (PAIRED, config.label),
            (ROLE, "AB"[number]),
            (SIDE, side.name),
            (MOST_PAIRS, str(config.criteria.most_pairs)),
            (SAME_WITHIN, f"{config.criteria.same_within:g}"),
            *config.guard,
            *config.parameters,
            *searched.parameters,
            ("load of a trial", config.load_words),
            ("users", searched.users),
            ("HTTP", config.placement.http),
        ),
    )
    most = config.criteria.most_pairs * MOST_INVALID
    measurement = MeasurementConfig(
        record=record,
        generator=searched.generator(limits, config.placement),
        policy=Interleaved(carry, TrialRequest(config.load, purpose=side.name), most),
        heading=f"{side.name}: {scenario.title}: {scenario.request}",
        budget_s=(config.load.duration_s or 0.0) * most,
    )
    group = MeasurementGroup((measurement,), searched.contexts, searched.most_existing)
    return RunConfig(
        "compare", side.target, (group,), config.command, fleet=config.fleet, tags=config.tags
    )


def measure(
    config: ComparisonConfig, store: Store, display: Display, backend: Backend = REAL
) -> MeasuredComparison:
    """Measure pair after pair until the primary metric has its answer.

    Raises MeasurementInvalid if the load generator was the limit or iterations failed; the trials
    so far are in the store.
    """
    side_a, side_b = config.sides
    with (
        undone_target(side_a.target, display.say, connected=backend.connected) as a,
        undone_target(side_b.target, display.say, connected=backend.connected) as b,
    ):
        known = config.searched.secrets | a.secrets | b.secrets | secrets_of_environment()
        with (
            hidden(known, store, display) as hiding,
            backend.sending_from(config.fleet, (a, b), display.say) as sending,
        ):
            return _Session(config, (a, b), hiding, display, sending).measure()


@dataclass(slots=True)
class _Session:
    config: ComparisonConfig
    targets: tuple[Target, Target]
    store: Store
    display: Display
    backend: Backend
    found: PairComparison | None = field(default=None, init=False)

    def measure(self) -> MeasuredComparison:
        """Run A with the run of B nested in it, so that both cover the same time."""
        runs: list[Run] = []

        def with_a(measure_a: Measure) -> None:
            def with_both(measure_b: Measure) -> None:
                self._pairs(measure_a, measure_b)

            runs.append(self._run(1, with_both))

        run_a = self._run(0, with_a)
        if self.found is None:
            raise AssertionError("a comparison has at least one pair")
        a, b = (memory_mb(target.members) for target in self.targets)
        return MeasuredComparison(self.found, (run_a, runs[0]), (a, b))

    def _run(self, number: int, carry: Callable[[Measure], None]) -> Run:
        run = run_config(self.config, number, carry)
        return run_on(self.targets[number], run, self.store, self.display, self.backend)

    def _pairs(self, *measures: Measure) -> None:
        config = self.config
        trials = [
            _with_request(one, TrialRequest(config.load, purpose=side.name))
            for one, side in zip(measures, config.sides, strict=True)
        ]
        names = [side.name for side in config.sides]
        order = self.backend.random()
        for found in in_pairs(trials, names, config.criteria, order, is_paced=config.is_paced):
            self.found = found
            self.display.say(_progress(found))
            if is_answered(found, config.most_slower):
                break


def _with_request(measure_one: Measure, request: TrialRequest) -> Callable[[], Trial]:
    return lambda: measure_one(request)


def _progress(found: PairComparison) -> str:
    row = found.primary
    so_far = f"{row.metric.name}: B / A = {row.ratio:.3f}"
    if row.high < float("inf"):
        so_far += f" ({row.low:.3f} to {row.high:.3f})"
    return f"  pair {found.pairs}: {so_far}"
