"""One measurement at a time on a deployment, held by real processes."""

import os
import shutil
import socket
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.measurement import ActiveMeasurement, measuring
from loadstone.system import presence

HOLD = """\
import sys
from pathlib import Path
from loadstone.lab.measurement import measuring
with measuring(Path(sys.argv[1]), sys.argv[2], anyway="anyway" in sys.argv) as held:
    held.set_run("20261122-0731-ab12cd")
    print("holds", flush=True)
    sys.stdin.read()
    print(*held.beside, sep=", ", flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test").mkdir()
    return tmp_path / "test"


@pytest.fixture
def hold(folder):
    """Start processes that hold the deployment until their stdin closes."""
    made = []

    def start(*words, at=None, place=""):
        made.append(
            subprocess.Popen(
                [sys.executable, "-c", HOLD, str(at or folder), place, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        assert made[-1].stdout.readline() == "holds\n"
        return made[-1]

    yield start
    for one in made:
        if one.returncode is None:
            one.communicate()


def test_a_second_measurement_is_refused_and_told_who_is_at_work(hold, folder):
    first = hold()
    with pytest.raises(EnvironmentUnusable) as refused, measuring(folder):
        pass
    assert refused.value.exit_code == 3
    words = str(refused.value)
    assert f"lab test is being measured by run 20261122-0731-ab12cd (pid {first.pid})" in words
    assert "--anyway" in words
    assert "\n" not in words


def test_a_killed_measurement_holds_nothing(hold, folder):
    first = hold()
    first.kill()
    first.communicate()
    with measuring(folder) as held:
        assert held.beside == ()
        assert len(list((folder / "measurements").iterdir())) == 1
    assert list((folder / "measurements").iterdir()) == []


def test_measured_all_the_same_both_know_of_each_other(hold, folder):
    first = hold()
    with measuring(folder, anyway=True) as held:
        assert held.beside == (f"run 20261122-0731-ab12cd (pid {first.pid})",)
    assert first.communicate()[0] == f"pid {os.getpid()}\n"


def test_the_first_ends_and_the_second_still_holds(hold, folder):
    first, second = hold(), hold("anyway")
    first.communicate()
    with pytest.raises(EnvironmentUnusable, match=rf"\(pid {second.pid}\)"), measuring(folder):
        pass
    second.communicate()
    with measuring(folder):
        pass


@pytest.fixture
def place():
    """A place that no other test measures."""
    return f"127.0.0.1:{os.getpid()}-of-a-test"


def test_a_measurement_whose_lab_was_purged_does_not_name_itself(folder, place):
    with measuring(folder, place) as held:
        shutil.rmtree(folder)
        assert held.beside == ()


def test_another_users_measurement_of_one_place_is_refused(hold, folder, tmp_path, place):
    first = hold(at=tmp_path / "home-of-another-user/targets/here", place=place)
    with pytest.raises(EnvironmentUnusable) as refused, measuring(folder, place):
        pass
    assert f"is being measured by pid {first.pid}, and" in str(refused.value)
    with measuring(folder, f"{place}1"):
        pass
    with measuring(folder, place, anyway=True) as held:
        assert held.beside == (f"pid {first.pid}",)
        assert first.communicate()[0] == f"pid {os.getpid()}\n"
    with measuring(folder, place) as held:
        assert held.beside == ()


def test_a_killed_measurement_of_another_user_holds_nothing(hold, folder, tmp_path, place):
    first = hold(at=tmp_path / "elsewhere", place=place)
    first.kill()
    first.communicate()
    with measuring(folder, place) as held:
        assert held.beside == ()


@pytest.mark.parametrize(
    "forged",
    ["", "/../x", "\n\x1b[31m", "999999999/1-00000000", "x" * 60, "99999999999999/1-00000000"],
)
def test_what_another_program_shows_at_such_a_name_is_at_worst_a_refusal(forged, folder, place):
    for mark in presence.marks(place):
        raise AssertionError(mark)
    digest = sha256(place.encode()).hexdigest()[:32]
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0loadstone/{digest}/{forged}")
        if forged == "999999999/1-00000000":
            with pytest.raises(EnvironmentUnusable, match="pid 1 of user 999999999, and"):
                measuring(folder, place).__enter__()
        else:
            with measuring(folder, place) as held:
                assert held.beside == ()


def test_a_full_disk_ends_no_measurement():
    ActiveMeasurement(Path("/dev/full")).set_run("20261122-0731-ab12cd")
