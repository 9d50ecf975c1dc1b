"""File systems that are filled."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadstone.errors import InvalidInput
from loadstone.faults import filling


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    words = ("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path))
    is_mounted = os.geteuid() == 0 and subprocess.run(words, check=False).returncode == 0
    if not is_mounted and "CI" not in os.environ:
        pytest.skip("mounts a file system, which only root may")
    assert is_mounted
    yield tmp_path
    subprocess.run(("umount", str(tmp_path)), check=True)


@pytest.mark.processes
def test_all_space_is_taken_and_given_back(small: Path) -> None:
    filling.require_small(small)
    filling.fill(small)
    with pytest.raises(OSError, match="No space"):
        (small / "more").write_bytes(b"x" * 65536)
    filling.free(filling.file(small))
    (small / "more").write_bytes(b"x" * 65536)


def test_a_file_system_that_others_use_is_not_filled() -> None:
    with pytest.raises(InvalidInput, match="one of its own"):
        filling.require_small(Path.home())
