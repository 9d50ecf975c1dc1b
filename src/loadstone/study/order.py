"""The order in which a study's cells are measured."""

import hashlib
from dataclasses import dataclass

from loadstone.study.model import Cell, Study
from loadstone.system.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement of one cell."""

    number: int  # from 1, in the order of measuring
    repeat: int  # from 1
    cell: Cell


def turns(study: Study, seed: int) -> tuple[Turn, ...]:
    """Return every cell once per repeat; each repeat has its own random order.

    All cells are measured once before any is measured twice, so that drift over hours affects all
    alike; cells are compared within a repeat. The order is that of hashes of seed, repeat and cell,
    so it is the same on every machine and for any number of repeats.
    """
    # Of a study with secrets, the journal keeps a copy without them, which has the same order.
    redaction = Redaction(study.secrets)
    names = {cell: redaction.text(str(cell)) for cell in study.cells}
    cells = [
        (repeat, cell)
        for repeat in range(1, study.repeats + 1)
        for cell in sorted(study.cells, key=lambda cell: _sort_key(seed, repeat, names[cell]))
    ]
    return tuple(Turn(i, repeat, cell) for i, (repeat, cell) in enumerate(cells, start=1))


def _sort_key(seed: int, repeat: int, cell: str) -> bytes:
    return hashlib.sha256(f"{seed}/{repeat}/{cell}".encode()).digest()
