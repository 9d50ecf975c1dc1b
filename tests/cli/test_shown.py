"""What commands show while they work, and of logs."""

from loadstone.cli.screen import Screen
from loadstone.engine.progress import Progress
from loadstone.lab import state
from loadstone.lab.state import DeploymentState, Phase, Record
from loadstone.plan.load import OpenLoad
from loadstone.search.model import TrialRequest


def test_the_first_line_of_a_load_shows_no_latency_of_the_one_before(monkeypatch, capfd):
    monkeypatch.setattr("loadstone.cli.screen.LINE_EVERY_S", 0.0)
    screen = Screen()
    done = Progress(elapsed_s=6.0, due=4, sent=4, ok=4, failed=0, latency_ms=1500.0)
    screen.on_trial_begin(TrialRequest(OpenLoad(1.0, 6.0), "first"))
    screen.on_progress(done)
    screen.on_trial_begin(TrialRequest(OpenLoad(1.0, 6.0), "second"))
    screen.on_progress(Progress(0.1, 1, 1, 0, 0, 0.0))
    first, second = capfd.readouterr().err.splitlines()
    assert "latency 1500 ms" in first
    assert "latency – " in second  # noqa: RUF001


def test_a_log_that_two_parts_share_is_shown_once(at_once, tmp_path):
    folder = tmp_path / "lab" / "deployments" / "it"
    log = tmp_path / "prepare.log"
    log.write_text("prepared\n")
    records = tuple(Record(part, None, 15, (str(log),)) for part in ("schema", "keystone"))
    begun = DeploymentState("it", "r", Phase.STOPPED, "boot", (("workers", "1"),), records=records)
    state.write(folder, begun)
    ended = at_once("lab", "logs", "it")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("prepared") == 1
    assert at_once("lab", "logs", "it", "keystone").stdout.count("prepared") == 1
