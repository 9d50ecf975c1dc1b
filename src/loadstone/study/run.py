"""A study from its first turn, or from where it stopped, to its last."""

import time
from collections.abc import Callable

from loadstone.errors import LoadstoneError
from loadstone.result import Result
from loadstone.study.journal import Ended, Journal
from loadstone.study.order import Turn, turns

Measure = Callable[[Turn], Result]


def carry_out(
    journal: Journal,
    measure: Measure,
    say: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Measure the turns that are missing; one that fails is kept with its reason.

    Turns that failed before are tried again. Whatever else ends the study (Ctrl-C, a kill) loses
    the turn that is under way, and nothing more.
    """
    study = journal.begun.study()
    order = turns(study, journal.begun.seed)
    with journal.held():
        ended = journal.ended()
        missing = [t for t in order if t.number not in ended or ended[t.number].run_id is None]
        for turn in missing:
            if turn is not missing[0] and study.pause_s:
                say(f"pause of {study.pause_s:g} s")
                pause(study.pause_s)
            say(f"[{turn.number}/{len(order)}] {turn.cell} (repeat {turn.repeat})")
            journal.add(_ended(turn, measure, say))


def _ended(turn: Turn, measure: Measure, say: Callable[[str], None]) -> Ended:
    try:
        result = measure(turn)
    except LoadstoneError as failed:
        say(f"this cell failed, the study goes on: {failed}")
        return Ended(turn.number, None, str(failed), failed.exit_code)
    return Ended(turn.number, result.run_id, None)
