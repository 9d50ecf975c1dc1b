"""`loadstone live`: the page of a run that another process measures."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, environment

pytestmark = pytest.mark.processes
NOWHERE = "http://127.0.0.1:9/v3"
SUPPORT = Path(__file__).resolve().parents[1] / "support"
MEASURING = """
import signal, sys
from dataclasses import replace
sys.path.insert(0, sys.argv[1])
from realistic import keystone
from loadstone.store import location
from loadstone.store.store import Store
result, samples = keystone()
store = Store.open(location.usual())
empty = tuple(replace(one, capacity=None, trials=()) for one in result.measurements)
store.begin(replace(result, status="running", ended_at=None, measurements=empty))
store.keep_trial(result.run_id, 0, result.measurements[0].trials[0], samples[0, 1])
print("stored", flush=True)
signal.pause()
"""


@pytest.fixture
def measuring(tmp_path):
    """A process that has stored one trial and goes on."""
    with subprocess.Popen(
        [sys.executable, "-c", MEASURING, str(SUPPORT)],
        env=environment(NOWHERE, tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "stored\n"
        yield process
        process.kill()


def test_following_a_run_ends_when_its_process_is_killed(measuring, tmp_path):
    loadstone = CommandLine(tmp_path)
    with loadstone.begun("live", url=NOWHERE) as following:
        assert following.stderr.readline().startswith("live page: http://127.0.0.1:")
        measuring.kill()
        measuring.wait()
        _, errors = following.communicate(timeout=60)
        assert (following.returncode, errors) == (0, "")
    refused = loadstone("live")
    assert refused.returncode == 2
    assert "has ended (interrupted)" in refused.stderr
