import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual import VirtualCommandLine

MEMORY = Path("/dev/shm")
FREE = 256 * 1024**2  # bytes; a test writes a few hundred thousand


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: each trial is synced to disk, which takes longer."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < FREE:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="loadstone-", dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def loadstone(home: Path, capfd, monkeypatch) -> VirtualCommandLine:
    """The command line in virtual time."""
    return VirtualCommandLine(home, capfd, monkeypatch)
