from pathlib import Path

import numpy as np
import pytest

from loadstone.engine import parquet
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable


def table(rows: int) -> Samples:
    random = np.random.default_rng(rows)
    due = np.sort(random.integers(0, 10**12, rows))
    reached = random.random(rows) < 0.9
    return Samples(
        due_ns=due,
        sent_ns=np.where(reached, due + random.integers(0, 10**6, rows), -1),
        done_ns=due + random.integers(10**7, 10**8, rows),
        first_byte_us=random.integers(0, 2**32, rows, dtype=np.uint32),
        iteration=random.integers(0, 2**32, rows, dtype=np.uint32),
        connection=random.integers(0, 2**32, rows, dtype=np.uint32),
        status=random.choice(np.array([0, 201, 401, 503], dtype=np.uint16), rows),
        outcome=random.integers(0, 13, rows, dtype=np.uint8),
        action=random.integers(0, 256, rows, dtype=np.uint8),
        retried=random.integers(0, 2, rows, dtype=np.uint8),
        generator=random.integers(0, 300, rows, dtype=np.uint16),
    )


# More than a row group; more than a batch; one; none.
@pytest.mark.parametrize("rows", [pytest.param(1_100_000, marks=pytest.mark.long), 20_000, 1, 0])
def test_what_is_written_is_read_again(tmp_path: Path, rows: int) -> None:
    samples = table(rows)
    path = tmp_path / "trial.parquet"
    parquet.write(path, samples)
    again = parquet.read(path)
    for name in Samples.__slots__:
        before, after = getattr(samples, name), getattr(again, name)
        assert after.dtype == before.dtype
        assert np.array_equal(after, before)
    assert [file.name for file in tmp_path.iterdir()] == ["trial.parquet"]


def test_a_file_from_before_retries_were_recorded_is_still_read() -> None:
    samples = parquet.read(Path(__file__).parents[1] / "data" / "samples_first.parquet")
    assert list(samples.connection) == [0, 65535, 7]
    assert samples.connection.dtype == np.uint32
    assert list(samples.status) == [200, 503, 0]
    assert list(samples.action) == [0, 1, 0]
    assert list(samples.retried) == [0, 0, 0]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "trial.parquet"
    parquet.write(path, table(10))
    parquet.write(path, table(20))
    assert len(parquet.read(path)) == 20


def test_a_table_is_smaller_on_disk_than_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "trial.parquet"
    samples = table(100_000)
    parquet.write(path, samples)
    in_memory = sum(getattr(samples, name).nbytes for name in Samples.__slots__)
    assert path.stat().st_size < 0.75 * in_memory


def test_a_full_disk_is_told_with_its_path_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trial.parquet"
    # Whatever is written to the part file goes to a device that is full.
    Path(f"{path}.part").symlink_to("/dev/full")
    with pytest.raises(EnvironmentUnusable, match="No space left on device") as raised:
        parquet.write(path, table(100_000))
    assert str(raised.value).startswith(f"{path}: cannot be written: ")
    assert "choose another folder" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_told_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "none" / "trial.parquet"
    with pytest.raises(EnvironmentUnusable, match="No such file or directory"):
        parquet.write(path, table(1))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 1000, b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_what_is_no_sample_file_is_told_with_its_path(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(EnvironmentUnusable, match="cannot be read") as raised:
        parquet.read(path)
    assert str(path) in str(raised.value)


def test_damage_in_the_middle_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "trial.parquet"
    parquet.write(path, table(50_000))
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(30):
        damaged = content.copy()
        for at in rng.integers(4, len(damaged), 20):
            damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            parquet.read(path)
        except EnvironmentUnusable:
            continue
