import sys
from contextlib import suppress
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import hashing


@pytest.mark.processes
def test_the_bcrypt_of_the_service_is_timed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bcrypt.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with suppress(EnvironmentUnusable):  # if this Python has no bcrypt
        hashing.measure(Path(sys.executable), 4)
    assert not (tmp_path / "imported").exists()
