from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from known_service import Known, known_service


@pytest.fixture
def loadstone(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def service() -> Iterator[Known]:
    """Two workers of 20 ms: 100 requests a second."""
    with known_service(2, 0.02) as known:
        yield known
