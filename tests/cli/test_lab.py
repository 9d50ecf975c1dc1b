"""`loadstone lab` of labs that are on other hosts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.lab import remote_lab


def test_a_lab_on_a_host_that_is_lost_can_be_forgotten(
    at_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    gone = str(tmp_path / "gone.yaml")
    remote_lab.keep(remote_lab.RemoteRecord("far", "10.0.0.9", gone, None, without_tls=False))
    refused = at_once("lab", "down", "far")
    assert refused.returncode == 2
    assert "host 10.0.0.9 is lost for good: loadstone lab down far --forget" in refused.stderr
    assert remote_lab.recorded("far") is not None
    done = at_once("lab", "down", "far", "--forget")
    assert done.returncode == 0
    assert "forgot lab far; if host 10.0.0.9 still runs, so may the lab" in done.stderr
    assert remote_lab.recorded("far") is None
    assert at_once("lab", "down", "far", "--forget").returncode == 2


def test_folders_and_patches_of_a_lab_host_are_not_looked_for_here(
    at_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    up = ("lab", "up", "far", "--on=10.0.0.9", f"--fleet={tmp_path / 'gone.yaml'}")
    for setting in (
        "storage=/only/there",
        "release=30.0.0+/only/there.patch",
        "release=/only/there/keystone",
    ):
        assert "gone.yaml" in at_once(*up, "--with", setting).stderr
    for setting, mend in (
        ("storage=disc", "storage must be disk, tmpfs"),
        ("release=12.0.0+/only/there.patch", "release=12.0.0 is too old"),
        ("token=uuid", "needs release=13.0.2"),
    ):
        assert mend in at_once(*up, "--with", setting).stderr


def test_a_lab_on_another_host_is_known_until_its_data_are_removed(
    at_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    fleet = "tcp://127.0.0.1:9"
    remote_lab.keep(remote_lab.RemoteRecord("far", "far", fleet, None, without_tls=True))
    there = {"far"}

    @contextmanager
    def connected(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(
            down=lambda name, _, purge: there.discard(name) if purge else None,
            summaries=lambda: tuple(SimpleNamespace(name=name, url=None) for name in there),
        )

    monkeypatch.setattr(remote_lab, "connected", connected)
    assert at_once("lab", "down", "far").returncode == 0
    assert remote_lab.recorded("far") is not None
    told = at_once("lab", "up", "far").stderr
    options = f"--on far --fleet {fleet} --fleet-without-tls"
    assert f"start it there: {options}; or remove it" in told
    told = at_once("lab", "up", "far", "--on=far", f"--fleet={fleet}").stderr
    assert f"with other options of the fleet; start it with the same: {options}" in told
    assert "--purge" not in told
    told = at_once("lab", "up", "far", "--on=near", f"--fleet={fleet}").stderr
    assert "lab far is on far; remove it: loadstone lab down far --purge" in told
    assert at_once("lab", "down", "far", "--purge").returncode == 0
    assert remote_lab.recorded("far") is None


def test_the_record_of_a_lab_on_another_host_that_cannot_be_read_is_told_in_one_line(
    at_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    path = tmp_path / "lab" / "elsewhere" / "far.json"
    path.mkdir(parents=True)  # as unreadable as a file of root, also for root
    refused = at_once("lab", "up", "far")
    assert refused.returncode == 3
    assert refused.stderr == f"loadstone: {path} cannot be read (Is a directory)\n"
    listed = at_once("lab", "list")
    assert listed.returncode == 0
    assert listed.stderr == f"{path} cannot be read (Is a directory)\n"


def test_options_of_down_that_would_have_no_effect_are_refused(
    at_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    gone = str(tmp_path / "gone.yaml")
    remote_lab.keep(remote_lab.RemoteRecord("far", "10.0.0.9", gone, None, without_tls=False))
    assert "--anyway needs --purge" in at_once("lab", "down", "far", "--anyway").stderr
    refused = at_once("lab", "down", "far", "--forget", "--purge")
    assert refused.returncode == 2
    assert remote_lab.recorded("far") is not None


@pytest.mark.parametrize(
    "words",
    [
        ("--workers=2", "--with=workers=3"),
        ("--with=cache=local", "--with=cache=memcached"),
        ("--population=users=10", "--with=users=5"),
    ],
)
def test_a_setting_that_is_given_twice_is_refused(
    at_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    refused = at_once("lab", "up", "it", *words)
    assert refused.returncode == 2
    assert "is given twice, and a lab has one value of each" in refused.stderr
    assert not list(tmp_path.iterdir())
