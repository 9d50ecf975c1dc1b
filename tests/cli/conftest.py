import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, environment
from known_service import Known, known_service

from loadstone.cli import main


@pytest.fixture
def loadstone(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """The command line in this process: another takes a second to start."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as here:
            for name, value in environment("http://127.0.0.1:9/v3", tmp_path).items():
                here.setenv(name, value)
            here.chdir(tmp_path)
            here.setattr("sys.argv", ["loadstone", *words])
            with pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def service() -> Iterator[Known]:
    """Two workers of 20 ms: 100 requests a second."""
    with known_service(2, 0.02) as known:
        yield known
