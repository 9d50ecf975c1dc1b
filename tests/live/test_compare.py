"""`loadstone compare` and `prove` on real Keystones: a difference that is known is found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from documents import only

from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.store.store import Store

pytestmark = [pytest.mark.live, pytest.mark.verify, pytest.mark.timeout(900)]

# A password check at cost 12 takes 256 times as long as one at cost 4.
COSTLY = "hash-rounds=12"
SHORT = ("--seconds=2", "--users=2", "--concurrency=2", "--pairs=10")


def test_a_costlier_password_hash_is_slower(exclusive_keystone: Deployment, tmp_path: Path) -> None:
    words = (
        "prove",
        f"--lab={exclusive_keystone.name}",
        f"--set={COSTLY}",
        *SHORT,
        "--json=out.json",
    )
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", *words, f"--store={tmp_path / 'store'}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    differ = {one["name"] for one in found["settings"]}
    assert differ == {"password hash", "conf.identity.password_hash_rounds"}
    rows = only(found)["metrics"]
    assert rows["throughput"]["answer"] == "slower"
    assert rows["CPU per request"]["ratio"] > 1.2
    assert f"With {COSTLY}, throughput of token issue is" in done.stdout
    assert "memory" in done.stdout
    assert "To repeat it: loadstone prove" in done.stdout
    assert not any(one.name.startswith("compare-") for one in deployment.every())


def test_a_rule_of_the_audit_is_proven_with_load_from_a_fleet(
    exclusive_keystone: Deployment, tmp_path: Path
) -> None:
    """The deployment has 2 workers, so that A has one; N of a login is bound to the processor."""
    lab, fleet = f"--lab={exclusive_keystone.name}", "--fleet=local:2"
    words = ("audit", "prove", "WEB-01", lab, fleet, *SHORT, "--json=out.json")
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", *words, f"--store={tmp_path / 'store'}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    differ = {one["name"]: (one["a"], one["b"]) for one in found["settings"]}
    # Facts of the audit were kept with both runs, and no others differ.
    assert differ.keys() == {"workers", "web.processes"}
    assert differ["web.processes"] == ("1", "2")
    row = only(found)["metrics"]["throughput"]
    assert row["answer"] == "faster"
    assert "WEB-01" in found["notes"][0]
    with Store.open(tmp_path / "store") as store:
        runs = [store.get(one.run_id) for one in store.every()]
    assert {dict(run.environment.machine)["fleet"] for run in runs} == {"local:2"}
    for run in runs:
        for trial in run.measurements[0].trials:
            assert len(trial.health.parts) == 2
