"""A study's journal and the store's results, brought together."""

from collections.abc import Iterator

from loadstone.errors import InvalidInput
from loadstone.store.store import Store
from loadstone.study.journal import Ended, Journal
from loadstone.study.order import Turn, turns
from loadstone.study.table import Outcome


def outcomes(journal: Journal, store: Store) -> Iterator[Outcome]:
    """Give what came of every turn of the study."""
    ended = journal.ended()
    for turn in turns(journal.begun.study(), journal.begun.seed):
        yield _outcome(turn, ended.get(turn.number), store)


def _outcome(turn: Turn, ended: Ended | None, store: Store) -> Outcome:
    if ended is None or ended.run_id is None:
        return Outcome(turn, None, ended.failure if ended else None)
    try:
        return Outcome(turn, store.get(ended.run_id))
    except InvalidInput:
        return Outcome(turn, None, f"its result {ended.run_id} is no longer in the store")
