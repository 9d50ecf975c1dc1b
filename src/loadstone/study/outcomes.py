"""Joins a study's journal with the results in the store."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadstone.errors import FELL_SHORT, EnvironmentUnusable, InvalidInput, MeasurementInvalid
from loadstone.result import outcome
from loadstone.result.model import Measurement as Measured
from loadstone.result.model import Run
from loadstone.run.exit_code import accepting_ranges, left_by, leftovers
from loadstone.search.model import Capacity, CapacityKind
from loadstone.store.store import RunDamaged, Store
from loadstone.study.duet import CellPair, cell_pairs
from loadstone.study.figure import most_completed_rps, timed
from loadstone.study.journal import StudyJournal, TurnResult
from loadstone.study.model import Measurement, Tasks
from loadstone.study.order import Turn, turns
from loadstone.study.table import RatioOutcome, TurnOutcome


def outcomes(journal: StudyJournal, store: Store) -> Iterator[TurnOutcome]:
    """Yield the outcome of every turn of the study."""
    ended, study = journal.ended(), journal.begun.study()
    for turn in turns(study, journal.begun.seed):
        yield _outcome(turn, ended.get(turn.number), store, study.measurement)


def _outcome(
    turn: Turn, ended: TurnResult | None, store: Store, measurement: Measurement
) -> TurnOutcome:
    if ended is None:
        return TurnOutcome(turn, None)
    if ended.run_id is None:
        return TurnOutcome(turn, None, ended.failure, ended.exit_code)
    try:
        run = store.get(ended.run_id)
    except InvalidInput:
        why = f"its result {ended.run_id} is no longer in the store"
        return TurnOutcome(turn, None, why, EnvironmentUnusable.exit_code)
    except RunDamaged as damaged:
        return TurnOutcome(turn, None, str(damaged), damaged.exit_code)
    return outcome_of(turn, run, measurement, store)


def outcome_of(turn: Turn, run: Run, measurement: Measurement, store: Store) -> TurnOutcome:
    """Return the outcome of a turn that was measured."""
    # Steps without a row in the table only prepare.
    # The table combines a cell's turns, and of a single one it shows the range.
    judged = accepting_ranges(replace(run, measurements=_judged(run, measurement)))
    if turn.cell.is_reference:
        judged = replace(judged, measurements=tuple(map(_bounded, judged.measurements)))
    is_clean = not leftovers(store, run.run_id)
    code = outcome.exit_code(judged, is_clean=is_clean)
    return TurnOutcome(turn, run, None, code, is_clean=is_clean)


def ratios(journal: StudyJournal, store: Store) -> Iterator[RatioOutcome]:
    """Yield the outcome of every pair of cells that is loaded in turns."""
    ended = journal.ended()
    for pair in cell_pairs(journal.begun.study()):
        yield _ratio(pair, ended.get(pair.number), store)


def _ratio(pair: CellPair, ended: TurnResult | None, store: Store) -> RatioOutcome:
    if ended is None:
        return RatioOutcome(pair, None)
    if ended.ratio is None:
        return RatioOutcome(pair, None, ended.failure, ended.exit_code)
    run_ids = ended.ratio.run_ids
    try:
        runs = tuple(store.get(run_id) for run_id in run_ids)
    except InvalidInput:
        why = f"a result of {' and '.join(run_ids)} is no longer in the store"
        return RatioOutcome(pair, None, why, EnvironmentUnusable.exit_code)
    except RunDamaged as damaged:
        return RatioOutcome(pair, None, str(damaged), damaged.exit_code)
    left = left_by(store.location, run_ids)
    code = FELL_SHORT if left else 0
    return RatioOutcome(pair, ended.ratio, exit_code=code, runs=runs, left=left)


def exit_code(ended: Sequence[TurnOutcome], in_turns: Sequence[RatioOutcome] = ()) -> int:
    """Return the highest exit code; 0 if every cell was measured and held."""
    missing = [MeasurementInvalid.exit_code for one in ended if not (one.result or one.failure)]
    codes = [*(one.exit_code for one in ended), *(one.exit_code for one in in_turns)]
    return max((*codes, *missing), default=0)


def forget_deleted(journal: StudyJournal, store: Store) -> None:
    """Record turns whose results are gone or damaged as failed, to measure them again."""
    with journal.locked():
        measured = {number for number, one in journal.ended().items() if one.run_id is not None}
        for one in outcomes(journal, store):
            if one.result is None and one.turn.number in measured:
                journal.add(TurnResult(one.turn.number, None, one.failure, one.exit_code))
        for pair in ratios(journal, store):
            if pair.ratio is None and pair.cells.number in measured:
                journal.add(TurnResult(pair.cells.number, None, pair.failure, pair.exit_code))


def _bounded(one: Measured) -> Measured:
    """Return a search of the reference service, whose lower bound counts as an answer."""
    bound = most_completed_rps(one) if one.policy == "search" else None
    if bound is None:
        return one
    return replace(one, capacity=Capacity(bound, bound, None, 0.0, kind=CapacityKind.CEILING))


def _judged(run: Run, measurement: Measurement) -> tuple[Measured, ...]:
    """Return the measurements whose criteria must hold; a failure that the study seeks may not."""
    found = timed(run, measurement)
    if isinstance(measurement, Tasks) and measurement.until_failure:
        return tuple(one for one in found if one.checks_passed or one.failure is not None)
    return found
