"""Runs a study, or resumes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loadstone.cloud.permission import require_loopback
from loadstone.compare.measure import measure as measure_comparison
from loadstone.compare.metrics import THROUGHPUT
from loadstone.engine.fleet.address import FleetAddress, SchedulerAddress
from loadstone.engine.fleet.hosts_file import SshFleet
from loadstone.errors import LoadstoneError, MeasurementInvalid
from loadstone.result.model import Run, Tags
from loadstone.result.observer import Display
from loadstone.run.backend import REAL, Backend
from loadstone.run.flow import hidden, run
from loadstone.store.store import Store
from loadstone.study import needs
from loadstone.study.cell import config_of
from loadstone.study.duet import FLEET, CellPair, cell_pairs, comparison_of
from loadstone.study.estimate import about, pair_s, turn_s
from loadstone.study.figure import is_valid
from loadstone.study.journal import StudyJournal, ThroughputRatio, TurnResult
from loadstone.study.model import Study
from loadstone.study.order import Turn, turns
from loadstone.study.outcomes import forget_deleted
from loadstone.system.clock import SYSTEM
from loadstone.system.say import Say

Measure = Callable[[Turn], Run]
Compare = Callable[[CellPair], ThroughputRatio]


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """Options that apply to every run of a study."""

    fleet: FleetAddress | None = None  # sends the load; None: this machine
    beyond_loopback: bool = False  # whether the user permits load on the fleet's lab hosts
    tags: Tags = ()  # of every run


ON_THIS_MACHINE = StudyOptions()


def run_study(
    journal: StudyJournal,
    store: Store,
    display: Display,
    command: str,
    options: StudyOptions = ON_THIS_MACHINE,
    backend: Backend = REAL,
) -> None:
    """Measure the missing turns, each on a lab of its own; a fleet sends the load, if there is one.

    Lab hosts of a fleet measure in parallel.
    """
    forget_deleted(journal, store)
    fleet = options.fleet
    if isinstance(fleet, SchedulerAddress | SshFleet):
        from loadstone.engine.fleet import client

        with client.located(fleet) as scheduler:
            if _run_on_lab_hosts(journal, scheduler, display, command, options):
                return
            here = replace(options, fleet=scheduler)
            _run_here(journal, store, display, command, here, backend)
        return
    _run_here(journal, store, display, command, options, backend)


def _run_on_lab_hosts(
    journal: StudyJournal,
    scheduler: SchedulerAddress,
    display: Display,
    command: str,
    options: StudyOptions,
) -> bool:
    """Measure on the lab hosts of a fleet; return False if it has none."""
    from loadstone.study import placing
    from loadstone.study.parallel import ParallelStudy

    slots = placing.slots(scheduler, display.say)
    if not slots:
        return False
    placing.require_placeable(journal.begun.study())
    for slot in slots:
        if not options.beyond_loopback:
            require_loopback(slot.host, 0, slot.host, "lab host ")
    study = ParallelStudy(
        journal, slots, command, options.beyond_loopback, display.say, options.tags
    )
    study.carry_out()
    _say_without_turns(journal.begun.study(), display.say)
    return True


def _say_without_turns(study: Study, say: Say) -> None:
    """Say that a fleet's loads do not take turns."""
    if cell_pairs(study):
        say(FLEET)


def _run_here(
    journal: StudyJournal,
    store: Store,
    display: Display,
    command: str,
    options: StudyOptions,
    backend: Backend,
) -> None:
    study = journal.begun.study()
    if backend.is_real:
        needs.require(study)

    def measure(turn: Turn) -> Run:
        config = config_of(study, journal.study_id, turn, command)
        config = replace(config, fleet=options.fleet, tags=options.tags)
        return run(config, hiding, display, backend)

    def compare(pair: CellPair) -> ThroughputRatio:
        config = comparison_of(study, journal.study_id, pair, command, options.tags)
        found = measure_comparison(config, hiding, display, backend)
        rows = [row for row in found.comparison.metrics if row.metric == THROUGHPUT]
        if not rows:
            raise MeasurementInvalid(f"{THROUGHPUT.name} was not measured")
        run_ids = (found.runs[0].run_id, found.runs[1].run_id)
        return ThroughputRatio(run_ids, rows[0], found.comparison.not_full)

    with hidden(study.secrets, store, display) as hiding:
        clock = backend.clock
        is_here = options.fleet is None
        in_turns = compare if is_here else None
        carry_out(journal, measure, display.say, clock.sleep, clock.monotonic_s, in_turns)
        if not is_here:
            _say_without_turns(study, display.say)


def carry_out(
    journal: StudyJournal,
    measure: Measure,
    say: Say,
    pause: Callable[[float], None] = SYSTEM.sleep,
    clock: Callable[[], float] = SYSTEM.monotonic_s,
    compare: Compare | None = None,
) -> None:
    """Measure the missing turns; failed ones are recorded with their reason.

    Turns in which the load generator was the limit are measured once more, after all others. Then
    the pairs of cells that have no ratio yet are compared in turns, if `compare` is given. Turns
    and pairs of an earlier run that failed or were limited are tried again. Ctrl-C or a kill loses
    only the current one.
    """
    study = journal.begun.study()
    todo = _Turns(study, turns(study, journal.begun.seed), measure, say, pause)
    with journal.locked():
        ended = journal.ended()
        done_before = {number for number, one in ended.items() if one.is_done}
        missing = [turn for turn in todo.order if turn.number not in done_before]
        pairs = [
            pair
            for pair in (cell_pairs(study) if compare is not None else ())
            if pair.number not in done_before
        ]
        doubtful = []
        began_s = clock()
        pairs_s = sum(pair_s(study, pair) for pair in pairs)
        for done, turn in enumerate(missing):
            left_s = todo.left_s(missing[:done], missing[done:], clock() - began_s) + pairs_s
            result = todo.measure_turn(turn, left_s, is_first=not done)
            earlier = ended.get(turn.number)
            # An earlier result, of which the generator was the limit, is better than none.
            if result.run_id is not None or earlier is None or earlier.run_id is None:
                journal.add(result)
            if not result.is_valid:
                doubtful.append(turn)
        for turn in doubtful:
            say("once more, for the load generator was the limit:")
            result = todo.measure_turn(turn, None, is_first=False)
            if result.run_id is not None:  # otherwise the first result stays
                journal.add(result)
        for number, pair in enumerate(pairs, 1):
            left_s = sum(pair_s(study, one) for one in pairs[number - 1 :])
            say(f"in turns [{number}/{len(pairs)}] {pair}, about {about(left_s)} left")
            if compare is not None:
                journal.add(_compared(pair, compare, say))


def _compared(pair: CellPair, compare: Compare, say: Say) -> TurnResult:
    try:
        found = compare(pair)
    except LoadstoneError as failed:
        say(f"this pair failed, the study goes on: {failed}")
        return TurnResult(pair.number, None, str(failed), failed.exit_code)
    return TurnResult(pair.number, found.run_ids[0], None, ratio=found)


@dataclass(frozen=True, slots=True)
class _Turns:
    study: Study
    order: tuple[Turn, ...]
    measure: Measure
    say: Say
    pause: Callable[[float], None]

    def left_s(self, done: Sequence[Turn], left: Sequence[Turn], spent_s: float) -> float:
        """Return the estimated remaining time, scaled by the turns so far."""
        left_s, done_s = (sum(turn_s(self.study, t.cell) for t in some) for some in (left, done))
        return left_s * (spent_s / done_s if done else 1.0)

    def measure_turn(self, turn: Turn, left_s: float | None, *, is_first: bool) -> TurnResult:
        """Pause, then measure one turn."""
        if not is_first and self.study.pause_s:
            self.say(f"pause of {self.study.pause_s:g} s")
            self.pause(self.study.pause_s)
        left = "" if left_s is None else f", about {about(left_s)} left"
        self.say(f"[{turn.number}/{len(self.order)}] {turn.cell} (repeat {turn.repeat}){left}")
        try:
            result = self.measure(turn)
        except LoadstoneError as failed:
            self.say(f"this cell failed, the study goes on: {failed}")
            return TurnResult(turn.number, None, str(failed), failed.exit_code)
        valid = is_valid(result, self.study.measurement, is_reference=turn.cell.is_reference)
        return TurnResult(turn.number, result.run_id, None, is_valid=valid)
