"""What commands show while they work, and of logs."""

import time
from collections.abc import Iterator

from loadstone.cli.screen import Screen
from loadstone.cli.stderr import Stderr
from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.resources import Watch
from loadstone.engine.progress import Progress
from loadstone.lab import state
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record
from loadstone.live.feed import Feed
from loadstone.monitor.metrics import Reading
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.source import Source
from loadstone.plan.load import OpenLoad
from loadstone.search.model import TrialRequest


def test_the_first_line_of_a_load_shows_no_latency_of_the_one_before(monkeypatch, capfd):
    monkeypatch.setattr("loadstone.cli.screen.LINE_EVERY_S", 0.0)
    feed = Feed([Screen()])
    done = Progress(elapsed_s=6.0, due=4, sent=4, ok=4, failed=0, latency_ms=1500.0)
    for purpose, progress in (("first", done), ("second", Progress(0.1, 1, 1, 0, 0, 0.0))):
        trial = feed.observer("run")
        trial.on_trial_begin(TrialRequest(OpenLoad(1.0, 6.0), purpose))
        trial.on_progress(progress)
        trial.close()
    first, second = capfd.readouterr().err.splitlines()
    assert "latency 1500 ms" in first
    assert "latency – " in second  # noqa: RUF001


def test_a_log_that_two_parts_share_is_shown_once(at_once, tmp_path):
    folder = tmp_path / "lab" / "deployments" / "it"
    log = tmp_path / "prepare.log"
    log.write_text("prepared\n")
    records = tuple(Record(part, None, 15, (str(log),)) for part in ("schema", "keystone"))
    begun = DeploymentState(
        "it", "r", DeploymentPhase.STOPPED, "boot", (("workers", "1"),), records=records
    )
    state.write(folder, begun)
    ended = at_once("lab", "logs", "it")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("prepared") == 1
    assert at_once("lab", "logs", "it", "keystone").stdout.count("prepared") == 1


class _Busy(Source):
    """A machine of two cores, of which Keystone keeps one and a half busy."""

    name = "made"

    def read(self) -> Iterator[Reading]:
        now_s = time.monotonic()
        yield Reading("machine", "cores", 2.0)
        for core, share in (("cpu0", 1.0), ("cpu1", 0.5)):
            yield Reading(f"machine/{core}", "cpu_busy_seconds_total", share * now_s, "s")
        yield Reading("keystone", "cpu_seconds_total", 1.5 * now_s, "s")
        yield Reading("generator", "cpu_seconds_total", 1.9 * now_s, "s")

    def close(self) -> None:
        pass


def test_a_log_with_colours_is_not_redrawn(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Screen() as screen:
        assert not screen.needs_resources
        screen.say("a line")
    assert capfd.readouterr().err == "a line\n"


def test_a_terminal_shows_what_is_busiest_beside_the_load(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(Stderr, "isatty", lambda _: True)
    monkeypatch.setattr("loadstone.live.feed.BUSY_EVERY_S", 0.0)
    with Monitor([_Busy()], every_s=0.1) as monitor, Screen() as screen:
        feed = Feed([screen])
        feed.watch(Watch(monitor, Setup(workers=2)))
        trial = feed.observer("run")
        trial.on_trial_begin(TrialRequest(OpenLoad(1.0, 6.0), "first"))
        time.sleep(1.0)
        trial.on_progress(Progress(6.0, 4, 4, 4, 0, 20.0))
        time.sleep(0.3)
    shown = capfd.readouterr().err
    busy = next(line for line in shown.splitlines() if "busy: " in line)
    assert "the machine's CPU 75 %" in busy
    assert "Keystone's CPU 75 %" in busy
    assert "load generator" not in busy
