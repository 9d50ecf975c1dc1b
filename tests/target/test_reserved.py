"""A target that is not a lab has one measurement at a time, known by its host and port."""

import fcntl
import os
from pathlib import Path

import pytest

from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable
from loadstone.lab.measurement import FOLDER
from loadstone.system import paths
from loadstone.target.reservation import reserved

# Nothing listens there. Reservations are seen by all users of the machine, so also by other tests.
PORT = 20_000 + os.getpid() % 40_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def other() -> Path:
    """Hold a lock as another process does that measures the place."""
    path = paths.targets() / f"127.0.0.1%3A{PORT}" / FOLDER / "1-abcd"
    path.parent.mkdir(parents=True)
    path.write_text("run 20261122-0731-ab12cd\n")
    handle = os.open(path, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield path
    os.close(handle)


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("url", ["http://127.0.0.1:PORT/v3", "http://LOCALHOST:PORT"])
def test_a_second_measurement_of_one_url_is_refused(url: str) -> None:
    with (
        pytest.raises(EnvironmentUnusable) as refused,
        reserved(Endpoint.parse(url.replace("PORT", str(PORT))), anyway=False),
    ):
        pass
    assert str(refused.value) == (
        f"127.0.0.1:{PORT} is being measured by run 20261122-0731-ab12cd (pid 1), and measurements "
        "at the same time falsify each other: wait for it, or add --anyway"
    )
    assert refused.value.exit_code == 3


def test_with_anyway_both_results_name_the_other(other: Path) -> None:
    with reserved(Endpoint.parse(f"http://127.0.0.1:{PORT}/v3"), anyway=True) as held:
        assert held.beside == ("run 20261122-0731-ab12cd (pid 1)",)
    assert f"beside pid {os.getpid()}" in other.read_text()


@pytest.mark.usefixtures("other")
def test_another_port_is_another_target() -> None:
    with reserved(Endpoint.parse(f"http://127.0.0.1:{PORT + 1}/v3"), anyway=False) as held:
        assert held.beside == ()


def test_one_comparison_measures_two_entries_of_one_service() -> None:
    place = Endpoint.parse(f"http://127.0.0.1:{PORT}/v3")
    with reserved(place, anyway=False), reserved(place, anyway=False) as second:
        assert second.beside == ()
