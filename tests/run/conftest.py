"""Tasks carried out against a fake Keystone, by the command line in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.cli import main


@dataclass(frozen=True)
class Told:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Retries stay, their waits go."""
    monkeypatch.setattr("loadstone.keystone.identity._RETRY_WAITS_S", (0.0,) * 4)
    monkeypatch.setattr("loadstone.keystone.contexts.users._REVOKED_S", 0.0)


@pytest.fixture
def fake():
    return FakeKeystone()


@pytest.fixture
def loadstone(fake, tmp_path: Path, monkeypatch, capfd):
    """The command line with the fake as its target; starting a process for each is slow."""
    with serving(fake.handler()) as url:
        monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
        for name, value in {
            "OS_AUTH_URL": f"{url}/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_ID": "default",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)

        def run(*words: str) -> Told:
            monkeypatch.setattr("sys.argv", ["loadstone", *words])
            with pytest.raises(SystemExit) as ended:
                main()
            return Told(int(ended.value.code or 0), *capfd.readouterr())

        yield run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write_it(text: str, name: str = "task.yaml") -> str:
        (tmp_path / name).write_text(text)
        return name

    return write_it
