"""A target that is not a lab has one measurement at a time, known by its host and port."""

import fcntl
import os
from pathlib import Path

import pytest

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.target import reserved
from loadstone.lab.measurement import FOLDER
from loadstone.system import paths


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def other() -> Path:
    """Hold a lock as another process does that measures 127.0.0.1:5000."""
    path = paths.targets() / "127.0.0.1%3A5000" / FOLDER / "1-abcd"
    path.parent.mkdir(parents=True)
    path.write_text("run 20261122-0731-ab12cd\n")
    handle = os.open(path, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield path
    os.close(handle)


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("url", ["http://127.0.0.1:5000/v3", "http://LOCALHOST:5000"])
def test_a_second_measurement_of_one_url_is_refused(url: str) -> None:
    with (
        pytest.raises(EnvironmentUnusable) as refused,
        reserved(Endpoint.parse(url), anyway=False),
    ):
        pass
    assert str(refused.value) == (
        "127.0.0.1:5000 is being measured by run 20261122-0731-ab12cd (pid 1), and measurements at "
        "the same time falsify each other: wait for it, or add --anyway"
    )
    assert refused.value.exit_code == 3


def test_with_anyway_both_results_name_the_other(other: Path) -> None:
    with reserved(Endpoint.parse("http://127.0.0.1:5000/v3"), anyway=True) as held:
        assert held.beside == ("run 20261122-0731-ab12cd (pid 1)",)
    assert f"beside pid {os.getpid()}" in other.read_text()


@pytest.mark.usefixtures("other")
def test_another_port_is_another_target() -> None:
    with reserved(Endpoint.parse("http://127.0.0.1:5001/v3"), anyway=False) as held:
        assert held.beside == ()


def test_one_comparison_measures_two_entries_of_one_service() -> None:
    place = Endpoint.parse("http://127.0.0.1:5000/v3")
    with reserved(place, anyway=False), reserved(place, anyway=False) as second:
        assert second.beside == ()
