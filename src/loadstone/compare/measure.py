"""Measures two targets in pairs: one run for each, with trials that take turns or alternate.

Where both can be loaded at once, the loads of a pair of trials take turns (`compare.turns`): single
requests, and turns with several in flight. Otherwise whole trials alternate. Both sides may be one
service that is changed between trials (`SideSwitch`).

The n-th usable trials of both runs are the n-th pair, so that a stored comparison can be
reproduced.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Protocol, cast

from loadstone.analysis.model import Trial
from loadstone.compare.answer import ALPHA, Criteria, Metric, leading
from loadstone.compare.cores import SharedCores, shared_cores
from loadstone.compare.memory import memory_mb
from loadstone.compare.metrics import REQUEST_TIME, THROUGHPUT
from loadstone.compare.other_side import knowing_each_other
from loadstone.compare.pairs import (
    MOST_INVALID,
    PairComparison,
    in_pairs,
    is_answered,
    is_row_answered,
    of_turns,
    usable,
)
from loadstone.compare.restart import TwoLabs, two_labs
from loadstone.compare.starts import PAIRS_OF_A_START, most_starts
from loadstone.compare.turns import Duet, at_once, duet, request_s, turn_length
from loadstone.compare.where import COUNTED, COUNTED_S, PROFILE_S, PROFILED, Where, where
from loadstone.engine import gate
from loadstone.engine.fleet.address import FleetAddress
from loadstone.engine.gate import Engine
from loadstone.engine.samples import Samples
from loadstone.errors import LoadTimeUsed, MeasurementInvalid
from loadstone.faults.journal import UndoJournal
from loadstone.faults.pending import fault_target, undone_target
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.result.model import WARM_UP, Measurement, Run, Tags
from loadstone.result.observer import Display
from loadstone.run.backend import REAL, Backend
from loadstone.run.exit_code import left_by
from loadstone.run.flow import hidden, run_on
from loadstone.run.temporary import gone_with_target
from loadstone.search.model import Measure, TrialRequest
from loadstone.store.store import Store
from loadstone.system.redaction import secrets_of_environment
from loadstone.target.choice import NamedTarget, OwnLab, TargetChoice, secrets_of
from loadstone.target.target import Target
from loadstone.workload.model import (
    MAX_RATE_RPS,
    MeasurementConfig,
    MeasurementGroup,
    RunConfig,
    new_run_id,
)
from loadstone.workload.policy import Interleaved
from loadstone.workload.searchable import USERS, Searchable

PAIRED = "comparison"  # parameter: the label that both runs of a comparison share
# Of the warm-up after a start. Python's first two collections of all objects take 0.1 s of each
# worker; the second came after 115 validations on two workers, and the next ones come seldom. Once
# the time of an iteration is known, a warm-up ends after AFTER_START iterations of each side.
AFTER_START_S, AFTER_START = 15.0, 400
# Share of the highest rate from which on it, not the service, may be the throughput. (That the
# engine held iterations back says less: in a closed loop some are, long before the service idles.)
# In turns, the end of each turn has fewer in flight, so that less than the highest rate completes.
NEAR_CEILING = 0.9
ALONE_S = 1.0  # of single requests in a round of which only throughput is asked
# Pairs of single requests in a round that asks for both. Throughput needs more rounds than their
# time, so that this is enough, and takes less than a whole trial where requests are short.
SINGLE_PAIRS = 75
FEWEST_TURNS = 2.5  # pairs of turns that a trial has time for, however slow a side is
SIDE = "side"  # parameter: the name of the run's side
ROLE = "compared as"  # parameter: "A" or "B"
MOST_PAIRS = "pairs at most"  # parameter: the error rate is spent over this number of pairs
METRIC = "compared metric"  # parameter: the only one that is compared in turns; else both
ERROR_RATE = "error rate"  # parameter: of one comparison of several; else that of all, ALPHA
SAME_WITHIN = "same within"  # parameter: ratios this close to 1 count as equal
STARTS = "starts"  # parameter: ANEW if Keystone was started anew between pairs
ANEW = "anew between pairs of trials"
MOST_SLOWER = "slower at most"  # parameter: limit of --fail-if-slower


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two targets."""

    name: str
    target: TargetChoice
    expected: tuple[tuple[str, str], ...] = ()  # facts that the target must state


class SideSwitch(Protocol):
    """Changes the one service that both sides are."""

    def to(self, side: int) -> None:
        """Make the service that of a side: 0 or 1.

        Raises MeasurementInvalid if it cannot be, and is as it was before.
        """

    def back(self) -> None:
        """Make the service as it was before the first change."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """Advice for comparisons that cannot be measured: options that the command has."""

    time_used: str = ""
    slow: str = ""
    fast: str = ""
    short: str = ""


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
    metric: Metric | None = None  # the only one that is compared in turns; None: both
    profiles: bool = False  # at the end, both sides are profiled in turns
    takes_turns: bool = True  # False: whole trials alternate, as they must at a rate or on a fleet
    restarts: bool = True  # Keystone of two labs is started anew between pairs in turns
    switch: SideSwitch | None = None  # both sides are one service, changed before each trial
    remedies: Remedies = field(default_factory=Remedies)
    max_rate_rps: float = MAX_RATE_RPS  # limit of a closed loop
    warm_up_s: float = 0.0  # of the first trial in turns, if that is longer than the others
    label: str = field(default_factory=lambda: secrets.token_hex(4))
    run_ids: tuple[str, str] = field(default_factory=lambda: (new_run_id(), new_run_id()))

    @property
    def is_paced(self) -> bool:
        """Whether iterations are due at a rate."""
        return not isinstance(self.load, ClosedLoad)

    @property
    def is_in_turns(self) -> bool:
        """Whether both targets are loaded at once, in turns."""
        is_possible = not self.is_paced and self.fleet is None and self.switch is None
        return self.takes_turns and is_possible

    @property
    def load_s(self) -> float:
        """Seconds of load on each side, at most."""
        return self.most_starts * self.warming_s + self.trials_s + self.profiling_s

    @property
    def trials_s(self) -> float:
        """Seconds of trials on each side, at most."""
        return (self.load.duration_s or 0.0) * self.most_trials

    @property
    def warming_s(self) -> float:
        """Seconds of a warm-up after a start, at least; 0 if they are those of a trial."""
        return max(self.warm_up_s, AFTER_START_S) if self.may_start_anew else self.warm_up_s

    @property
    def may_start_anew(self) -> bool:
        """Whether Keystone is started anew between pairs, if both labs are on this machine."""
        return self.restarts and self.is_in_turns and all(_is_lab(side) for side in self.sides)

    @property
    def most_starts(self) -> int:
        """Starts of both services, at most; one warms up after each."""
        return most_starts(self.criteria.most_pairs) if self.may_start_anew else 1

    @property
    def profiling_s(self) -> float:
        """Seconds of load on each side for the profile at the end."""
        return PROFILE_S + COUNTED_S if self.profiles else 0.0

    @property
    def most_trials(self) -> int:
        """Trials on each side, at most; one whose result is not usable is repeated."""
        trials = self.criteria.most_pairs * MOST_INVALID
        # In turns, a pair has two trials of each side. One more warms up after each start, one has
        # the first single requests, one is profiled, and in one its SQL statements are counted.
        if self.is_in_turns:
            return 2 * trials + self.most_starts + (3 if self.profiles else 2)
        return trials if self.switch is None else 2 * trials  # one warms up after each change

    @property
    def guard(self) -> tuple[tuple[str, str], ...]:
        """The limit of --fail-if-slower as a parameter."""
        return () if self.most_slower is None else ((MOST_SLOWER, f"{self.most_slower:g}"),)

    @property
    def load_words(self) -> str:
        """Description of a trial's load."""
        if self.is_in_turns and isinstance(self.load, ClosedLoad):
            trial_s = self.load.duration_s or 0.0
            if self.load.workers == 1 or self.metric == REQUEST_TIME:
                return f"in turns, one at a time, for {trial_s:g} s"
            return (
                f"in turns, with {self.load.workers} in flight for {trial_s:g} s, and one at a time"
                f" for at least {min(ALONE_S, trial_s):g} s"
            )
        if isinstance(self.load, ClosedLoad):
            return f"{self.load.workers} in flight for {self.load.duration_s:g} s"
        return f"{self.load.rate_rps:g}/s for {self.load.duration_s:g} s"


@dataclass(frozen=True, slots=True)
class MeasuredComparison:
    """A comparison with its two runs."""

    comparison: PairComparison
    runs: tuple[Run, Run]
    memory_mb: tuple[float | None, float | None]  # of the services, after the last pair
    starts: int = 0  # of both services for the comparison; 0: they went on as they were
    restarted_s: float = 0.0  # that these starts took
    where: Where | None = None  # where the difference lies, if both were profiled
    left: tuple[str, ...] = ()  # the runs that left something in their clouds


def warming_again_s(first_s: float, trial_s: float, iteration_s: float) -> float:
    """Return the seconds of a warm-up after a further start.

    `first_s` are those of the first one, `iteration_s` the time per iteration at full load.
    """
    return min(first_s, max(trial_s, 2 * AFTER_START * iteration_s))  # each side has half of it


def _is_lab(side: Side) -> bool:
    match side.target:
        case OwnLab() | NamedTarget(lab=str()):
            return True
        case _:
            return False


def run_config(
    config: ComparisonConfig,
    number: int,
    carry: Callable[[Measure], None],
    *,
    is_started_anew: bool = False,
) -> RunConfig:
    """Return the run of one side; `carry` decides when each of its trials runs."""
    side, searched = config.sides[number], config.searched
    scenario = searched.scenario
    limits, rate_rps = Limits(), 0.0
    match config.load:
        case ClosedLoad(workers=workers):
            limits = Limits(max_connections=workers)
        case OpenLoad() as load:
            rate_rps = load.rate_rps
    record = Measurement(
        scenario=scenario.name,
        title=scenario.title,
        request=scenario.request,
        policy="turns" if config.is_in_turns else "fixed",
        parameters=(
            (PAIRED, config.label),
            (ROLE, "AB"[number]),
            (SIDE, side.name),
            (MOST_PAIRS, str(config.criteria.most_pairs)),
            (SAME_WITHIN, f"{config.criteria.same_within:g}"),
            *config.guard,
            *_error_rate(config.criteria),
            *(((METRIC, config.metric.name),) if config.metric and config.is_in_turns else ()),
            *(((STARTS, ANEW),) if is_started_anew else ()),
            *config.parameters,
            *searched.parameters,
            ("load of a trial", config.load_words),
            (USERS, searched.users),
            ("HTTP", config.placement.http),
        ),
    )
    placement = config.placement
    if config.is_in_turns:
        placement = replace(placement, threads=1, cores=placement.cores[:1])
    request = TrialRequest(config.load, purpose=side.name)
    measurement = MeasurementConfig(
        record=record,
        generator=searched.generator(limits, placement),
        policy=Interleaved(carry, request, config.most_trials, PROFILED, COUNTED),
        heading=f"{side.name}: {scenario.title}: {scenario.request}",
        budget_s=config.load_s,
    )
    group = MeasurementGroup((measurement,), searched.contexts, searched.most_existing)
    return RunConfig(
        "compare",
        side.target,
        (group,),
        config.command,
        profiles=config.profiles,
        fleet=config.fleet,
        tags=config.tags,
        max_rate_rps=max(config.max_rate_rps, rate_rps),
        expected_facts=side.expected,
        run_id=config.run_ids[number],
    )


def _error_rate(criteria: Criteria) -> tuple[tuple[str, str], ...]:
    return () if criteria.alpha == ALPHA else ((ERROR_RATE, f"{criteria.alpha:g}"),)


def measure(
    config: ComparisonConfig, store: Store, display: Display, backend: Backend = REAL
) -> MeasuredComparison:
    """Measure pair after pair until every metric that decides has its answer.

    Raises MeasurementInvalid if the load generator was the limit or iterations failed; the trials
    so far are in the store.
    """
    choices = [side.target for side in config.sides]
    temporary_a, temporary_b = (
        gone_with_target(choice, run_id, store, display.say)
        for choice, run_id in zip(choices, config.run_ids, strict=True)
    )
    known = config.searched.secrets | secrets_of_environment()
    known = known.union(*map(secrets_of, choices))
    with (
        hidden(known, store, display) as hiding_known,  # in errors while connecting, too
        temporary_a,
        temporary_b,
        undone_target(choices[0], display.say, connected=backend.connected) as a,
        _other(a, config, display, backend) as b,
        hidden(a.secrets | b.secrets, hiding_known, display) as hiding,
        backend.sending_from(config.fleet, (a, b), display.say) as sending,
    ):
        targets: AbstractContextManager[tuple[Target, Target]] = nullcontext((a, b))
        if config.is_in_turns:
            targets = knowing_each_other(a, b, display.say)
        with targets as sides:
            found = _Session(config, sides, hiding, display, sending).measure()
    return replace(found, left=left_by(store.location, config.run_ids))


def _other(
    a: Target, config: ComparisonConfig, display: Display, backend: Backend
) -> AbstractContextManager[Target]:
    """Connect to B, unless both sides are one service."""
    if config.switch is not None:
        return nullcontext(a)
    return undone_target(config.sides[1].target, display.say, connected=backend.connected)


@dataclass(slots=True)
class _Session:
    config: ComparisonConfig
    targets: tuple[Target, Target]
    store: Store
    display: Display
    backend: Backend
    found: PairComparison | None = field(default=None, init=False)
    configs: tuple[RunConfig, ...] = field(default=(), init=False)  # of the runs, A first
    where: Where | None = field(default=None, init=False)
    # Whose Keystone is started anew between pairs; None: it goes on as it is.
    labs: TwoLabs | None = field(default=None, init=False)
    starts: int = field(default=0, init=False)
    restarted_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.config.may_start_anew:
            self.labs = two_labs(self.targets)

    def measure(self) -> MeasuredComparison:
        """Run A with the run of B nested in it, so that both cover the same time."""
        runs: list[Run] = []
        engines = [self.backend.engine] * 2
        measure_pairs = self._alternate
        if self.config.is_in_turns:
            pair = gate.pair(self.backend.engine, self.backend.random())
            engines, measure_pairs = list(pair.sides), partial(self._take_turns, pair)

        def with_a(measure_a: Measure) -> None:
            def with_both(measure_b: Measure) -> None:
                measure_pairs(measure_a, measure_b)

            runs.append(self._run(1, with_both, engines[1]))

        run_a = self._run(0, with_a, engines[0])
        if self.found is None:
            raise AssertionError("a comparison has at least one pair")
        memory = (memory_mb(self.targets[0].members), memory_mb(self.targets[1].members))
        return MeasuredComparison(
            self.found,
            (run_a, runs[0]),
            memory,
            where=self.where,
            starts=self.starts,
            restarted_s=self.restarted_s,
        )

    def _run(self, number: int, carry: Callable[[Measure], None], engine: Engine) -> Run:
        run = run_config(self.config, number, carry, is_started_anew=self.labs is not None)
        self.configs += (run,)
        backend = replace(self.backend, engine=engine)
        return run_on(self.targets[number], run, self.store, self.display, backend)

    def _take_turns(self, pair: gate.Pair, measure_a: Measure, measure_b: Measure) -> None:
        members = [target.members for target in self.targets]
        journals = [UndoJournal.of(fault_target(target)) for target in self.targets]
        known = [target.watch and target.watch.setup.threads for target in self.targets]
        threads = max((one for one in known if one), default=None) if all(known) else None
        with shared_cores(members, journals, threads) as shared:
            config, order = self.config, self.backend.random()
            left_s = config.load_s - config.profiling_s
            turns = _LoadInTurns(config, pair, (measure_a, measure_b), shared, order, left_s)
            self._measure_rounds(turns)

    def _measure_rounds(self, turns: "_LoadInTurns") -> None:
        """Measure rounds of trials in turns: one request at a time, and several in flight."""
        config = self.config
        load = cast("ClosedLoad", config.load)
        warming_s = config.warm_up_s if self.labs is None else config.warming_s
        lasts_s = max(load.duration_s or 0.0, warming_s)
        warm = replace(load, turn=load.workers, duration_s=lasts_s)
        self._start_anew(turns)
        warmed = self._warmed(partial(turns.both, warm, WARM_UP))
        first = self._first_turns(warmed)
        slowest_s = first.slowest_s
        trial_s = load.duration_s or 0.0
        # One at a time, an iteration takes no longer than the time in which a full service ends as
        # many as are in flight.
        single_s = first.pair_s / first.length * load.workers
        single = _lasting(replace(load, workers=1, turn=1), ALONE_S, single_s)
        alone = self._warmed(partial(turns.both, single, WARM_UP))
        served = at_once(first, duet(alone, self._samples(alone)))
        length = turn_length(load.workers, slowest_s, served)
        next_loads = partial(self._next_loads, load, length, first)
        _require_time(next_loads([]), config, turns.left_s)
        warm_again = replace(warm, duration_s=warming_again_s(lasts_s, trial_s, slowest_s))
        self._measure_pairs(turns, next_loads, warm_again)
        if config.profiles:
            self._profile(turns.both, replace(load, workers=1, turn=1))

    def _measure_pairs(
        self,
        turns: "_LoadInTurns",
        next_loads: Callable[[Sequence[Duet]], Sequence[ClosedLoad]],
        warm: ClosedLoad,
    ) -> None:
        """Measure pair after pair until all is answered or the load time is used up.

        `next_loads` returns the loads of the next round, `warm` is the warm-up after a further
        start.
        """
        duets: list[Duet] = []
        is_over = False
        for number in range(self.config.criteria.most_pairs):
            try:
                if number and number % PAIRS_OF_A_START == 0 and self._start_anew(turns):
                    self._warmed(partial(turns.within_time, warm, WARM_UP))
                for one in next_loads(tuple(duets)):
                    trials = self._usable(partial(turns.within_time, one, _purpose(one)))
                    start = None if self.labs is None else self.starts
                    duets.append(duet(trials, self._samples(trials), start))
                    self._require_below_ceiling(duets[-1].values.get(THROUGHPUT, ()))
            except LoadTimeUsed:
                if self.found is None:
                    raise
                is_over = True
            only = self.config.metric
            self.found = of_turns(duets, self.config.criteria, only.name if only else None)
            if is_over:
                self.display.say(f"  {_used_up(self.config, _after(self.found))}")
                break
            self.display.say(_progress(self.found))
            if is_answered(self.found, self.config.most_slower):
                break

    def _start_anew(self, turns: "_LoadInTurns") -> bool:
        """Start Keystone anew on both sides, where that is ours to do; return whether it is."""
        if self.labs is None:
            return False
        self.starts += 1
        began_s = self.backend.clock.monotonic_s()
        self.labs.restart(turns.order)
        if turns.shared is not None:
            turns.shared.find_workers()
        self.restarted_s += self.backend.clock.monotonic_s() - began_s
        return True

    def _profile(self, both: "_Both", single: ClosedLoad) -> None:
        """Profile both sides in turns; that it cannot be done takes no answer away."""
        try:
            profiling = replace(single, duration_s=PROFILE_S)
            profiled = self._usable(partial(both, profiling, PROFILED))
            self.where = where(profiled)
            if self._count_statements:
                counting = replace(single, duration_s=COUNTED_S)
                counted = self._usable(partial(both, counting, COUNTED))
                self.where = where(profiled, counted)
        except MeasurementInvalid as problem:
            is_over = isinstance(problem, LoadTimeUsed)
            reason = "its load time was used up" if is_over else problem
            why = f"The profile of both sides could not be completed: {reason}."
            if self.found is not None:
                self.found = replace(self.found, statements=(*self.found.statements, why))
            self.display.say(f"  {why}")

    @property
    def _names(self) -> list[str]:
        return [side.name for side in self.config.sides]

    @property
    def _count_statements(self) -> bool:
        # Imported here: it imports the code of the lab, which is needed to profile only.
        from loadstone.observers.statements import counts_statements

        return all(
            target.lab is not None and counts_statements(target.lab) for target in self.targets
        )

    def _next_loads(
        self, load: ClosedLoad, length: int, first: Duet, duets: Sequence[Duet]
    ) -> Sequence[ClosedLoad]:
        """Return the loads of the next round, for the metrics that have no answer yet.

        `length` is that of a turn with several in flight, `first` are the turns of the warm-up,
        `duets` those since.
        """
        trial_s = load.duration_s or 0.0
        # After its start a service is slower than later: the latest turns tell how long one takes.
        iteration_s = first.pair_s / first.length
        full_s = _latest_s(duets, length) or iteration_s * length
        single_s = _latest_s(duets, 1) or iteration_s * load.workers
        single = replace(load, workers=1, turn=1)
        open_metrics = self._open_metrics()
        if THROUGHPUT not in open_metrics or load.workers == 1:
            return [_lasting(single, trial_s, single_s)]
        # The throughput of a round depends on its single requests (`turns.full_rates`).
        planned_s = ALONE_S
        if REQUEST_TIME in open_metrics:
            planned_s = max(ALONE_S, 2 * SINGLE_PAIRS * max(request_s(duets) or (trial_s,)))
        return [
            _lasting(replace(load, turn=length), trial_s, full_s),
            _lasting(single, min(planned_s, trial_s), single_s),
        ]

    def _open_metrics(self) -> set[Metric]:
        """Return the metrics that have no answer yet; all of them in the first rounds."""
        config, found = self.config, self.found
        if config.metric is not None:
            return {config.metric}
        if found is None or found.pairs < config.criteria.fewest_pairs or not found.metrics:
            return {THROUGHPUT, REQUEST_TIME}
        return {
            row.metric
            for row in leading(found.metrics)
            if not is_row_answered(row, config.most_slower)
        }

    def _samples(self, trials: Sequence[Trial]) -> list[Samples]:
        runs = zip(self.configs, trials, strict=True)
        return [self.store.samples(run.run_id, trial) for run, trial in runs]

    def _usable(self, measure: Callable[[], Sequence[Trial]]) -> Sequence[Trial]:
        return usable(measure, self._names, self.config.remedies.short)

    def _warmed(self, measure: Callable[[], Sequence[Trial]]) -> Sequence[Trial]:
        """Warm up; Keystone with threads answers some first requests with 403 while it loads."""
        is_started = self.labs is not None
        remedy = self.config.remedies.short
        return usable(measure, self._names, remedy, tolerates_failures=is_started)

    def _first_turns(self, trials: Sequence[Trial]) -> Duet:
        """Return the turns of the warm-up, with all workers in flight."""
        found = duet(trials, self._samples(trials))
        if not found.pairs:
            raise MeasurementInvalid(
                f"no pair of turns of {found.length} iterations ended within the first "
                f"{trials[0].planned_s:g} s{self.config.remedies.short}"
            )
        return found

    def _alternate(self, *measures: Measure) -> None:
        config = self.config
        trials = [partial(self._one, measure, side) for side, measure in enumerate(measures)]
        order = self.backend.random()
        try:
            for found in in_pairs(
                *(trials, self._names, config.criteria, order),
                is_paced=config.is_paced,
                remedy=config.remedies.short,
            ):
                self.found = found
                self.display.say(_progress(found))
                if is_answered(found, config.most_slower):
                    break
        except LoadTimeUsed:
            if self.found is None:
                raise LoadTimeUsed(_used_up(config, "before an answer")) from None
            self.display.say(f"  {_used_up(config, _after(self.found))}")
        finally:
            # Before the users of both runs are removed, for which the service must answer.
            if config.switch is not None:
                config.switch.back()

    def _one(self, measure: Measure, side: int) -> Trial:
        """Measure one side, after the service was made that side."""
        config = self.config
        if config.switch is not None:
            config.switch.to(side)
            measure(TrialRequest(config.load, purpose=WARM_UP))
        trial = measure(TrialRequest(config.load, purpose=config.sides[side].name))
        self._require_below_ceiling([trial.stats.completed_rps])
        return trial

    def _require_below_ceiling(self, rates_rps: Sequence[float]) -> None:
        """Refuse services of which only the rate that a closed loop may send is seen."""
        most = max(rates_rps, default=0.0)
        ceiling_rps = self.config.max_rate_rps
        if not self.config.is_paced and most > NEAR_CEILING * ceiling_rps:
            raise MeasurementInvalid(
                f"{most:,.0f}/s are completed, and a comparison sends at most "
                f"{ceiling_rps:,.0f}/s in a closed loop, which does not tell them "
                f"apart{self.config.remedies.fast}"
            )


@dataclass(slots=True)
class _LoadInTurns:
    """Measures trials of both targets, whose loads take turns."""

    config: ComparisonConfig
    pair: gate.Pair
    measures: tuple[Measure, Measure]
    shared: SharedCores | None
    order: Random
    left_s: float  # of load

    def both(self, load: ClosedLoad, purpose: str) -> tuple[Trial, Trial]:
        """Measure a trial of each side."""
        if self.shared is not None:
            self.shared.deal(self.order)
        request = TrialRequest(load, purpose)
        trials = self.pair.measure(*(partial(measure, request) for measure in self.measures))
        self.left_s -= max(one.spent_s for one in trials)
        return trials

    def within_time(self, load: ClosedLoad, purpose: str) -> tuple[Trial, Trial]:
        """Measure a trial of each side; raise LoadTimeUsed if there is no time for it."""
        if _lasts_s([load]) > self.left_s:
            raise LoadTimeUsed(_used_up(self.config, "before an answer"))
        return self.both(load, purpose)


_Both = Callable[[ClosedLoad, str], tuple[Trial, Trial]]  # measures a trial of each side


def _used_up(config: ComparisonConfig, when: str) -> str:
    return f"the {config.load_s:.0f} s of load are used up {when}{config.remedies.time_used}"


def _after(found: PairComparison) -> str:
    return f"after {found.pairs} pair{'' if found.pairs == 1 else 's'}"


def _progress(found: PairComparison) -> str:
    so_far = []
    for row in leading(found.metrics):
        interval = f" ({row.low:.3f} to {row.high:.3f})" if row.high < float("inf") else ""
        so_far.append(f"{row.metric.name}: B / A = {row.ratio:.3f}{interval}")
    return f"  pair {found.pairs}: {'; '.join(so_far)}"


def _purpose(load: ClosedLoad) -> str:
    return f"in turns of {load.turn}" if load.workers > 1 else "in turns, one at a time"


def _lasts_s(loads: Sequence[ClosedLoad]) -> float:
    return sum(one.duration_s or 0.0 for one in loads)


def _require_time(loads: Sequence[ClosedLoad], config: ComparisonConfig, left_s: float) -> None:
    """Raise MeasurementInvalid if the fewest pairs that give an answer take too long."""
    fewest = config.criteria.fewest_pairs
    if fewest * _lasts_s(loads) > left_s:
        raise MeasurementInvalid(
            f"the service is slow: a pair of trials takes {_lasts_s(loads):.0f} s, so the {fewest} "
            f"pairs that an answer needs do not fit into {config.load_s:.0f} s of "
            f"load{config.remedies.slow}"
        )


def _latest_s(duets: Sequence[Duet], length: int) -> float | None:
    """Return how long a turn of `length` of each side took in the latest trial that has them."""
    latest = (one.pair_s for one in reversed(duets) if one.length == length and one.pairs)
    return next(latest, None)


def _lasting(load: ClosedLoad, planned_s: float, turns_s: float) -> ClosedLoad:
    """Return the load of a trial that has time for FEWEST_TURNS; `turns_s` is that of a pair."""
    return replace(load, duration_s=max(planned_s, FEWEST_TURNS * turns_s))
