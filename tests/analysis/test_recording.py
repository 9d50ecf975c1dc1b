from pathlib import Path

import numpy as np
import pytest

from loadstone.analysis.recording import recorded
from loadstone.engine.outcome import Outcome
from loadstone.engine.parquet import write
from loadstone.engine.samples import Samples
from loadstone.errors import InvalidInput


def test_a_text_of_seconds_is_a_schedule(tmp_path: Path) -> None:
    path = tmp_path / "arrivals.txt"
    path.write_text("0\n0.5\n\n 0.25\n3e1\n")
    load = recorded(path)
    assert load.offsets_s == (0.0, 0.25, 0.5, 30.0)
    assert load.duration_s == 30.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0\nnoon\n", r"arrivals.txt:2: must be seconds from the start, not 'noon'"),
        ("-1\n", r":1: must be seconds"),
        ("nan\n", r":1: must be seconds"),
        ("1766316978.5\n", r":1: is more than a year after the start; subtract"),
        ("\n", r"holds no arrivals"),
    ],
)
def test_what_is_no_schedule_is_refused_by_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "arrivals.txt"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        recorded(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.txt: cannot be read"):
        recorded(tmp_path / "none.txt")


def test_a_sample_file_is_replayed_as_its_iterations_were_due(tmp_path: Path) -> None:
    path = tmp_path / "trial.parquet"
    due_ns = np.array([125, 250, 400], dtype=np.int64) * 1_000_000
    table = Samples(
        due_ns=due_ns,
        sent_ns=due_ns,
        done_ns=due_ns,
        first_byte_us=np.zeros(3, dtype=np.uint32),
        iteration=np.array([0, 1, 0], dtype=np.uint32),
        connection=np.zeros(3, dtype=np.uint32),
        status=np.full(3, 200, dtype=np.uint16),
        outcome=np.full(3, Outcome.OK, dtype=np.uint8),
        action=np.array([0, 0, 1], dtype=np.uint8),
        retried=np.zeros(3, dtype=np.uint8),
        generator=np.zeros(3, dtype=np.uint16),
    )
    write(path, table)
    assert recorded(path).offsets_s == (0.125, 0.25)
