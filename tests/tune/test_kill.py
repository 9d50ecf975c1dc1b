"""The settings of a cloud are put back after SIGKILL of the command that changed them."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine, environment
from known_service import cloud_of, known_service
from lab_client import until

SPACE = "settings: [{name: WORKERS, levels: [1, 2]}]\n"
WORDS = (
    *("tune", "--cloud", "mine", "--space", "space.yaml", "--budget", "20m", "--users", "0"),
    *("--apply", 'echo "$WORKERS" > applied', "--revert", "rm -f applied; echo revert >> log"),
    "--yes-change-this-target",
)


@pytest.mark.processes
def test_the_settings_are_put_back_and_the_tuning_can_go_on(tmp_path: Path) -> None:
    work, loadstone = tmp_path / "work", CommandLine(tmp_path)
    work.mkdir()
    (work / "space.yaml").write_text(SPACE)
    with known_service(4, 0.01) as known:
        (work / "clouds.yaml").write_text(json.dumps({"clouds": {"mine": cloud_of(known.url)}}))
        with subprocess.Popen(
            loadstone.words(*WORDS, "--with", "WORKERS=1", "--seconds", "1"),
            cwd=work,
            env=environment(known.url, tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                until((work / "applied").exists, "a combination is applied")
            finally:
                process.send_signal(signal.SIGKILL)
        until(lambda: not (work / "applied").exists(), "the settings are put back")
        until(lambda: not list((tmp_path / "faults").glob("*.json")), "nothing is left to undo")
    assert (work / "log").read_text().endswith("revert\n")
    [journal] = tmp_path.rglob("comparisons.jsonl")
    assert journal.read_text().count("\n") >= 1
