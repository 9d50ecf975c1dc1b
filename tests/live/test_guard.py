"""A guard in CI on real Keystones: a patch that slows validation down ends the job with 1."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = [pytest.mark.live, pytest.mark.verify, pytest.mark.timeout(900)]

PATCH = """\
--- a/keystone/token/provider.py
+++ b/keystone/token/provider.py
@@ {at} @@
         try:
+            {line}
             token = self._validate_token(token_id)
"""
AT = "-145,2 +145,3"  # of release 30.0.0
SLEEP = "__import__('time').sleep(0.02)"
SHORT = ("--seconds=2", "--users=2", "--concurrency=1")
BASE = ("--base=workers=1", "--base=hash-rounds=4", "--base=cache=memcached")


def compared(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Compare for a CI server: with JUnit and Markdown."""
    command = [sys.executable, "-m", "loadstone", "compare", *words, "--junit=found.xml"]
    return subprocess.run(
        [*command, "--markdown=found.md", f"--store={folder / 'store'}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def releases(folder: Path, line: str, name: str) -> tuple[str, str]:
    """Options for Keystone 30.0.0, and for the same with one more line in each validation."""
    patch = folder / name
    patch.write_text(PATCH.format(at=AT, line=line))
    return "--release=30.0.0", f"--release=30.0.0+{patch}"


@pytest.mark.usefixtures("lab_home")
def test_a_patch_that_sleeps_for_20_ms_fails_the_guard(tmp_path: Path) -> None:
    sides = releases(tmp_path, SLEEP, "sleep.patch")
    guard = ("--scenario=validate", "--pairs=16", "--fail-if-slower=5%")
    done = compared(tmp_path, *sides, *BASE, *SHORT, *guard)
    assert done.returncode == 1, done.stderr
    (suite,) = ElementTree.parse(tmp_path / "found.xml").iter("testsuite")
    assert suite.get("failures") == "1"
    shown = (tmp_path / "found.md").read_text()
    assert "sleep.patch" in shown
    assert "slower" in shown


@pytest.mark.usefixtures("lab_home")
def test_a_patch_without_effect_passes_a_guard(tmp_path: Path) -> None:
    sides = releases(tmp_path, "pass", "nothing.patch")
    guard = ("--scenario=validate", "--pairs=16", "--fail-if-slower=50%")
    done = compared(tmp_path, *sides, *BASE, *SHORT, *guard)
    assert done.returncode == 0, done.stderr + done.stdout
    (suite,) = ElementTree.parse(tmp_path / "found.xml").iter("testsuite")
    assert suite.get("failures") == "0"
