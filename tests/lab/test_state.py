import signal
from dataclasses import replace
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import state
from loadstone.lab.processes import Process
from loadstone.lab.state import DeploymentState, Phase, Record

STATE = DeploymentState(
    name="it",
    run="ab12",
    phase=Phase.RUNNING,
    boot="a-boot",
    settings=(("workers", "2"),),
    ports=(("web", 15000),),
    python="/env/bin/python",
    release=(("text", "30.0.0"), ("version", "30.0.0"), ("digest", "")),
    facts=(("workers", "2"),),
    records=(
        Record("schema", None, int(signal.SIGTERM), ()),
        Record("uwsgi", Process(12, 34), int(signal.SIGINT), ("/logs/uwsgi.log",)),
    ),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    state.write(tmp_path, STATE)
    assert state.read(tmp_path) == STATE
    assert (tmp_path / state.FILE).stat().st_mode & 0o777 == 0o600


def test_no_state_is_none(tmp_path: Path) -> None:
    assert state.read(tmp_path / "nothing") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "it"}', '{"name": 1, "phase": "x"}'])
def test_a_broken_state_names_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / state.FILE).write_text(text)
    with pytest.raises(EnvironmentUnusable, match="--purge"):
        state.read(tmp_path)


def test_another_boot_is_seen() -> None:
    assert not STATE.is_of_this_boot


def test_a_part_that_starts_again_replaces_its_record() -> None:
    again = Record("uwsgi", Process(56, 78), int(signal.SIGINT), ())
    assert STATE.with_record(again) == replace(STATE, records=(STATE.records[0], again))
