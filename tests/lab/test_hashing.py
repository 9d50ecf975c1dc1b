import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


@pytest.mark.processes
def test_a_password_check_that_cannot_be_timed_costs_only_its_sentence(tmp_path: Path) -> None:
    measured: Any = SimpleNamespace(cpu_per_request_s=0.5, resources=None)
    assert hashing.explain(tmp_path / "python", "bcrypt, 12 rounds", measured) == ()
