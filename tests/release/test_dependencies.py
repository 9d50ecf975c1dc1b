"""What is said of advisories, above all where none could be looked up."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from release import dependencies
from release.dependencies import audited

pytestmark = pytest.mark.processes
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited"}
SOUND = {"name": "a", "version": "1.0", "vulns": []}
BAD = {"name": "c", "version": "2.0", "vulns": [{"id": "PYSEC-1"}, {"id": "CVE-2"}]}


def report(*rows: dict[str, object]) -> str:
    return json.dumps({"dependencies": rows})


@pytest.mark.parametrize("text", ["", "no JSON", "{}", report(), report(SKIPPED)])
def test_without_data_nothing_counts_as_checked(text: str) -> None:
    assert audited(text) == ([], "advisories of Python packages not checked: no data")


def test_packages_without_data_are_counted_and_vulnerable_ones_named() -> None:
    assert audited(report(SOUND)) == ([], "advisories of Python packages checked")
    found, line = audited(report(SOUND, SKIPPED, BAD))
    assert found == ["c 2.0: PYSEC-1, CVE-2"]
    assert line == "advisories of Python packages checked, except 1 without data"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins of cargo-deny, uv and pip-audit; `ADVISORIES` is what cargo-deny does."""
    monkeypatch.setattr(dependencies.wheels, "TOOLS", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    deny = 'case "$2" in advisories) echo "$ADVISORIES"; test -z "$ADVISORIES";; esac'
    for name, text in (("cargo-deny", deny), ("uv", "true"), ("pip-audit", "echo broken")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_a_database_that_cannot_be_fetched_is_one_line(tools, monkeypatch, capsys) -> None:
    monkeypatch.setenv("ADVISORIES", "error: failed to fetch advisory database https://x: offline")
    dependencies.check(str(tools / "uv"))
    assert capsys.readouterr().out.splitlines() == [
        "licences, bans and sources of Rust crates checked (deny.toml)",
        "advisories of Rust crates not checked: no data",
        "advisories of Python packages not checked: no data",
    ]


def test_an_advisory_ends_the_check(tools, monkeypatch) -> None:
    monkeypatch.setenv("ADVISORIES", "error[vulnerability]: RUSTSEC-2026-0001")
    with pytest.raises(SystemExit, match="RUSTSEC-2026-0001"):
        dependencies.check(str(tools / "uv"))


def test_without_cargo_deny_the_command_that_installs_it_is_named(tools, capsys) -> None:
    (tools / "cargo-deny").unlink()
    dependencies.check(str(tools / "uv"))
    assert "cargo install cargo-deny --locked" in capsys.readouterr().out


def test_the_command_is_part_of_the_release() -> None:
    words = [sys.executable, "-m", "release", "dependencies", "--help"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
