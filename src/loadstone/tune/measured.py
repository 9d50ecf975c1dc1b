"""Compares two combinations.

On labs, both are started anew, take turns, and are removed. A cloud is changed by the user's
commands before each trial.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from math import log

from loadstone.compare import disturbance
from loadstone.compare.answer import Criteria, Metric, MetricComparison
from loadstone.compare.measure import (
    ComparisonConfig,
    MeasuredComparison,
    Side,
    measure,
)
from loadstone.compare.metrics import CPU, P99, THROUGHPUT
from loadstone.errors import (
    EnvironmentUnusable,
    InvalidInput,
    MeasurementInvalid,
    StoreUnusable,
    first_line,
)
from loadstone.lab.keystone import settings
from loadstone.plan.load import ClosedLoad
from loadstone.result.model import WARM_UP, Run
from loadstone.result.observer import Display
from loadstone.run.backend import Backend
from loadstone.run.flow import run
from loadstone.store.store import Store
from loadstone.system.say import Say
from loadstone.target.choice import OwnLab, TargetChoice
from loadstone.target.target import Target
from loadstone.tune.budget import CHECK_PAIRS, N_S
from loadstone.tune.commands import CommandSwitch, switching
from loadstone.tune.evidence import GainEvidence
from loadstone.tune.journal import BegunTuning, TuningJournal
from loadstone.tune.model import Comparison, ComparisonOutcome, Found, TuningObjective, TuningPhase
from loadstone.tune.space import Pairs, words
from loadstone.workload.capacity import SearchTerms, search_group
from loadstone.workload.model import RunConfig
from loadstone.workload.services import searchable

LONGER = 3.0  # times the seconds of a trial, for a comparison that failed
TUNING, PHASE = "tuning", "tuning phase"  # parameters of both runs of a comparison
SIDES = ("the default", "the change")
DEFAULT_BESIDE_ITSELF = Comparison(TuningPhase.CHECK, (), (), CHECK_PAIRS)
METRICS: dict[TuningObjective, Metric] = {
    TuningObjective.N: THROUGHPUT,
    TuningObjective.CPU: CPU,
    TuningObjective.P99: P99,
}


@dataclass(slots=True)
class RealMeasure:
    """Measures comparisons of a tuning on deployments of the lab, or on a cloud."""

    journal: TuningJournal
    store: Store
    display: Display
    backend: Backend
    _longer: float = field(default=1.0, init=False)  # LONGER once the service has shown to be slow

    def __call__(self, comparison: Comparison) -> ComparisonOutcome:
        """Compare; a combination that does not start or does not serve is an outcome, too.

        A comparison that fails is made once more with longer trials: a busy moment of the machine
        must not condemn a combination. Raises EnvironmentUnusable if it is the default that does
        not start, if the settings of a cloud cannot be put back, or if results cannot be written.
        """
        if comparison.phase is TuningPhase.CAPACITY:
            return self._capacities(comparison)
        first = self._compared(comparison, self._longer)
        if first.evidence is not None:
            return first
        self.display.say(f"tune: once more: {first.failure}")
        again = self._compared(comparison, LONGER)
        begun, tuning_id = self.journal.begun, self.journal.tuning_id
        # The load of a cloud's comparison includes its changes, and says nothing of the service.
        is_of_lab = begun.commands is None
        if is_of_lab and again.load_s > config_of(begun, tuning_id, comparison).trials_s:
            self._longer = LONGER  # or every comparison would fail first
        return replace(
            again,
            took_s=first.took_s + again.took_s,
            failed_runs=(*first.failed_runs, *again.failed_runs),
        )

    def _capacities(self, comparison: Comparison) -> ComparisonOutcome:
        """Search N of both, one after the other."""
        began_s, runs = self.backend.clock.monotonic_s(), list[Run]()
        failed_runs = list[str]()
        begun, tuning_id = self.journal.begun, self.journal.tuning_id
        failure = ""
        with self._switching(comparison) as switch:
            for number, changes in enumerate((comparison.a, comparison.b)):
                config = search_of(begun, tuning_id, "ab"[number], changes)
                try:
                    if switch is not None:
                        switch.to(number)
                    runs.append(run(config, self.store, self.display, self.backend))
                except StoreUnusable:
                    raise  # it says nothing of the combination
                except (EnvironmentUnusable, MeasurementInvalid) as problem:
                    failure = first_line(problem)
                    failed_runs += self._begun([config.run_id])
        found = [_found(one) for one in runs]
        return ComparisonOutcome(
            evidence=None,
            failure=failure,
            took_s=self.backend.clock.monotonic_s() - began_s,
            runs=tuple(one.run_id for one in runs),
            capacities=(found[0], found[1]) if len(found) > 1 else None,
            failed_runs=tuple(failed_runs),
        )

    def _compared(self, comparison: Comparison, longer: float) -> ComparisonOutcome:
        clock = self.backend.clock
        began_s, begun = clock.monotonic_s(), self.journal.begun
        config = config_of(begun, self.journal.tuning_id, comparison, longer)
        starts = _Starts(self.backend)
        switched_s = 0.0
        try:
            with self._switching(comparison) as switch:
                found = measure(
                    replace(config, switch=switch),
                    self.store,
                    self.display,
                    replace(self.backend, connected=starts.connected),
                )
                switched_s = 0.0 if switch is None else switch.took_s
        except MeasurementInvalid as problem:
            return self._failed(problem, config, began_s)
        except StoreUnusable:
            raise  # it says nothing of the combination
        except (EnvironmentUnusable, InvalidInput) as problem:
            if begun.commands is not None:
                raise
            failed = comparison.a if starts.succeeded == 0 else comparison.b
            if not failed and isinstance(problem, EnvironmentUnusable):
                raise EnvironmentUnusable(f"the default does not start: {problem}") from None
            # A release may refuse an option or its value. Other mistakes are the user's.
            if isinstance(problem, InvalidInput) and (not failed or starts.succeeded > 1):
                raise
            is_a = starts.succeeded == 0
            return self._failed(problem, config, began_s, a_does_not_start=is_a)
        return self._outcome(found, clock.monotonic_s() - began_s, switched_s)

    def _failed(
        self,
        problem: Exception,
        config: ComparisonConfig,
        began_s: float,
        *,
        a_does_not_start: bool = False,
    ) -> ComparisonOutcome:
        return ComparisonOutcome(
            None,
            first_line(problem),
            self.backend.clock.monotonic_s() - began_s,
            a_does_not_start=a_does_not_start,
            failed_runs=self._begun(config.run_ids),
        )

    @contextmanager
    def _switching(self, comparison: Comparison) -> Iterator[CommandSwitch | None]:
        """Yield what changes a cloud between the two combinations; None for labs."""
        commands = self.journal.begun.commands
        if commands is None:
            yield None
            return

        def connected() -> AbstractContextManager[Target]:
            return self.backend.connected(commands.target, lambda _: None)

        sides = (comparison.a, comparison.b)
        clock, say = self.backend.clock, self.display.say
        with switching(commands, sides, self.journal.tuning_id, connected, clock, say) as switch:
            yield switch

    def _begun(self, run_ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of the runs that have begun, and so are in the store."""
        return tuple(run_id for run_id in run_ids if self.store.folder(run_id).is_dir())

    def _outcome(
        self, found: MeasuredComparison, took_s: float, switched_s: float
    ) -> ComparisonOutcome:
        metric = METRICS[self.journal.begun.objective]
        rows = [row for row in found.comparison.metrics if row.metric == metric]
        ids = (found.runs[0].run_id, found.runs[1].run_id)
        if not rows:
            return ComparisonOutcome(
                None, f"{metric.name} was not measured", took_s, failed_runs=ids
            )
        idle = found.comparison.not_full if metric == THROUGHPUT else None
        load_s = switched_s + _planned_s(found, is_switched=self.journal.begun.commands is not None)
        return ComparisonOutcome(
            evidence=evidence_of(rows[0]),
            took_s=took_s,
            load_s=load_s,
            runs=ids,
            a=rows[0].a,
            b=rows[0].b,
            notes=tuple(disturbance.notes(found.runs)),
            not_full="" if idle is None else idle.sentence(SIDES),
            findings=tuple(one.rule for one in found.runs[0].environment.audit),
            restart_s=_restart_s(found),
        )


def config_of(
    begun: BegunTuning, tuning_id: str, comparison: Comparison, longer: float = 1.0
) -> ComparisonConfig:
    """Return a comparison to measure, with trials that are so many times as long."""
    load, criteria = begun.load, Criteria(comparison.pairs, comparison.pairs)
    sides = (_side(begun, "a", comparison.a), _side(begun, "b", comparison.b))
    return ComparisonConfig(
        sides=sides,
        searched=searchable(sides[0].target, load.scenario, load.users, load.arguments),
        load=ClosedLoad(load.concurrency, duration_s=longer * load.seconds),
        criteria=criteria,
        command=begun.command,
        metric=THROUGHPUT,  # CPU and latencies come from the same trials
        parameters=((TUNING, tuning_id), (PHASE, comparison.phase.value)),
        takes_turns=begun.commands is None,
    )


def _planned_s(found: MeasuredComparison, *, is_switched: bool) -> float:
    """Return the seconds of load of the pairs; trials in turns have both sides in them."""
    runs = found.runs if is_switched else found.runs[:1]
    return sum(
        trial.planned_s
        for run in runs
        for one in run.measurements
        for trial in one.trials
        if is_switched or trial.purpose != WARM_UP
    )


def _restart_s(found: MeasuredComparison) -> float:
    """Return the seconds of a start of both services with its warm-up, on average."""
    if not found.starts:
        return 0.0
    trials = [trial for one in found.runs[0].measurements for trial in one.trials]
    warmed_s = sum(trial.planned_s for trial in trials if trial.purpose == WARM_UP)
    return (found.restarted_s + warmed_s) / found.starts


def search_of(begun: BegunTuning, tuning_id: str, letter: str, changes: Pairs) -> RunConfig:
    """Return a search for N of one combination, on a deployment of its own or the cloud."""
    load, side = begun.load, _side(begun, letter, changes)
    searched = searchable(side.target, load.scenario, load.users, load.arguments)
    group = search_group((searched,), SearchTerms(budget_s=N_S))
    about = ((TUNING, tuning_id), (PHASE, TuningPhase.CAPACITY.value), ("changes", side.name))
    [search] = group.measurements
    record = replace(search.record, parameters=(*about, *search.record.parameters))
    group = replace(group, measurements=(replace(search, record=record),))
    return RunConfig(kind="tune", target=side.target, groups=(group,), command=begun.command)


def _found(one: Run) -> Found:
    capacity = one.measurements[0].capacity
    if capacity is None:
        return Found(None, None, None)
    return Found(capacity.rate_rps, capacity.low_rps, capacity.high_rps)


def _side(begun: BegunTuning, letter: str, changes: Pairs) -> Side:
    if begun.commands is not None:
        return Side(words(changes), begun.commands.target)
    name = f"tune-{secrets.token_hex(3)}-{letter}"
    chosen = settings.read([*begun.space.default, *changes])
    return Side(words(changes), OwnLab(name, chosen, is_purged=True))


def evidence_of(row: MetricComparison) -> GainEvidence:
    """Return the evidence that B is better than A in a metric."""
    sign = 1.0 if row.metric.is_higher_better else -1.0
    of_all = None if row.of_all is None else sign * log(row.of_all)
    return GainEvidence(sign * log(row.ratio), row.deviation, row.pairs, of_all)


@dataclass(slots=True)
class _Starts:
    """Counts the targets that could be connected to, A first."""

    backend: Backend
    succeeded: int = field(default=0, init=False)

    @contextmanager
    def connected(self, choice: TargetChoice, say: Say) -> Iterator[Target]:
        with self.backend.connected(choice, say) as target:
            self.succeeded += 1
            yield target
