"""Changes of software or of the machine between the measurements of a study."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from loadstone.study.table import RatioOutcome, TurnOutcome

NAMES = ("release", "loadstone")  # facts of a run: what was measured, and by what

OF_MACHINE = ("cores", "processor", "memory", "system")  # facts of the machine of a run


def machine_lines(
    outcomes: Sequence[TurnOutcome], in_turns: Sequence[RatioOutcome]
) -> Iterator[str]:
    """Yield a line for each fact of this machine that was not the same in all measurements."""
    runs = [one.result for one in outcomes if one.result is not None and not one.host]
    runs += [run for pair in in_turns for run in pair.runs]
    facts = [dict(run.environment.machine) for run in runs]
    for name in OF_MACHINE:
        known = dict.fromkeys(one[name] for one in facts if name in one)
        if len(known) > 1:
            yield (
                f"The machine was not the same in all measurements ({name}: {'; '.join(known)}), "
                "and a difference between cells may be the machine's."
            )


def change_lines(
    outcomes: Sequence[TurnOutcome], in_turns: Sequence[RatioOutcome]
) -> Iterator[str]:
    """Yield a line for each cell that was measured with different software."""
    of_cell: dict[str, list[dict[str, str]]] = defaultdict(list)
    for one in outcomes:
        if one.result is not None:
            of_cell[str(one.turn.cell)].append(dict(one.result.environment.settings))
    for pair in in_turns:
        for cell, run in zip((pair.cells.base, pair.cells.other), pair.runs, strict=False):
            of_cell[str(cell)].append(dict(run.environment.settings))
    for measured, runs in of_cell.items():
        for name in NAMES:
            known = dict.fromkeys(facts[name] for facts in runs if name in facts)
            if len(known) > 1:
                yield (
                    f"{measured} was measured with different software ({name}: "
                    f"{'; '.join(known)}), and its figures are of no one of them."
                )
