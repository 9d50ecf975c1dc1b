"""One measurement at a time on a deployment, held by real processes."""

import os
import subprocess
import sys

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.measurement import measuring

HOLD = """\
import sys
from pathlib import Path
from loadstone.lab.measurement import measuring
with measuring(Path(sys.argv[1]), anyway="anyway" in sys.argv) as held:
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

    def start(*words):
        made.append(
            subprocess.Popen(
                [sys.executable, "-c", HOLD, str(folder), *words],
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
