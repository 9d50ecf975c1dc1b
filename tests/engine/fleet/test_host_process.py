"""The process that runs the workers of a fleet on a host."""

import io
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from loadstone.engine.fleet import host_process

ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class FakeWorker:
    """A worker during whose run a signal comes."""

    def __init__(self, ending: signal.Signals) -> None:
        self.ending, self.is_running = ending, True

    def poll(self) -> None:
        signal.raise_signal(self.ending)

    def terminate(self) -> None:
        self.is_running = False

    def wait(self, _: float) -> None:
        assert not self.is_running


@pytest.fixture
def _handlers() -> Iterator[None]:
    def fail(number: int, _: FrameType | None) -> None:
        raise AssertionError(f"{signal.Signals(number).name} would have killed the process")

    before = {one: signal.signal(one, fail) for one in ENDINGS}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.usefixtures("_handlers")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_signal_ends_the_workers_and_removes_the_key(
    ending: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, worker = tmp_path / "memory", FakeWorker(ending)
    folder.mkdir()
    config = {"ca": "A", "certificate": "B", "key": "C", "names": ["host-1"]}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(config) + "\n"))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(folder))
    monkeypatch.setattr(host_process, "_worker", lambda *_: worker)
    monkeypatch.setattr(host_process, "_await_end", lambda _: None)
    monkeypatch.setattr(host_process, "POLL_S", 0.0)
    host_process.main()
    assert not worker.is_running
    assert not folder.exists()


@pytest.mark.usefixtures("_handlers")
def test_workers_are_ended_if_a_further_one_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = FakeWorker(signal.SIGTERM)
    started = iter((worker,))
    config = {"ca": "A", "certificate": "B", "key": "C", "names": ["host-1", "host-2"]}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(config) + "\n"))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path))

    def start(*_: object) -> FakeWorker:
        if (found := next(started, None)) is None:
            raise BlockingIOError("Resource temporarily unavailable")
        return found

    monkeypatch.setattr(host_process, "_worker", start)
    with pytest.raises(BlockingIOError):
        host_process.main()
    assert not worker.is_running
