"""The main job on a real Keystone, by the command line."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from documents import of_run, only
from kept_names import kept_names

from loadstone import cli
from loadstone.cloud import connect, from_environment
from loadstone.keystone.contexts import users
from loadstone.keystone.identity import Identity
from loadstone.result.outcome import exit_code
from loadstone.run.exit_code import leftovers
from loadstone.store.store import Store

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


def loadstone(*words):
    """Run the command line in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["loadstone", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return ended.value.code


def cloud_of(deployment):
    return from_environment(deployment.environment_variables(), f"--lab {deployment.name}")


def things(deployment):
    with connect(cloud_of(deployment)) as access:
        return kept_names(Identity(access))


def code_of(run_id, store):
    """The exit code that goes with what was found, which depends on the machine."""
    with Store.open(store) as opened:
        run = opened.get(run_id)
        assert run.status == "finished"
        return exit_code(run, is_clean=not leftovers(opened, run_id))


def assert_in_no_file(secret, *folders):
    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path


@pytest.mark.verify
def test_a_search_of_a_scenario_that_makes_users_leaves_none(exclusive_keystone, tmp_path, capsys):
    before = things(exclusive_keystone)
    code = loadstone(
        *("capacity", "--lab", exclusive_keystone.name, "--scenario", "KeystoneBasic.create_user"),
        *("--arg", "enabled=false", "--arg", "password=Hunter2-of-the-users"),
        *("--users", "2", "--budget", "20s", "--store", tmp_path, "--json", "-"),
    )
    shown = capsys.readouterr()
    found = of_run(json.loads(shown.out))
    assert code == code_of(found["run_id"], tmp_path), shown.err
    assert found["scenario"] == "KeystoneBasic.create_user"
    assert found["title"] == "KeystoneBasic.create_user (enabled=false, password=***)"
    assert any(trial["throughput_rps"] > 0 for trial in found["trials"])
    assert things(exclusive_keystone) == before
    announced = (tmp_path / "runs" / found["run_id"] / "created.jsonl").read_text()
    assert found["run_id"] in announced
    assert "Hunter2-of-the-users" not in shown.out + shown.err
    assert_in_no_file("Hunter2-of-the-users", tmp_path)


def test_capacity_of_a_real_keystone_leaves_no_user_and_no_password(
    exclusive_keystone, tmp_path, monkeypatch, capsys
):
    made = []
    new_password = users.new_password

    def remembered():
        made.append(new_password())
        return made[-1]

    monkeypatch.setattr(users, "new_password", remembered)
    before = things(exclusive_keystone)
    code = loadstone(
        *("capacity", "--lab", exclusive_keystone.name, "--scenario", "validate", "--users", "4"),
        *("--budget", "20s", "--store", tmp_path, "--json", "-"),
    )
    shown = capsys.readouterr()
    found = of_run(json.loads(shown.out))
    assert code == code_of(found["run_id"], tmp_path), shown.err
    assert found["scenario"] == "Keystone.validate_token"
    assert found["trials"]
    assert found["trials"][0]["errors"] == 0  # a search overloads the service later
    assert things(exclusive_keystone) == before
    assert len(made) >= 4
    keystone = exclusive_keystone.folder
    for secret in made:
        assert secret not in shown.out + shown.err
        assert_in_no_file(secret, tmp_path, keystone)
    assert_in_no_file(exclusive_keystone.environment_variables()["OS_PASSWORD"], tmp_path)
    assert_in_no_file(
        exclusive_keystone.environment_variables()["OS_PASSWORD"],
        *(p for _, p in logs(exclusive_keystone)),
    )


def logs(deployment):
    return [(part, path.parent) for part, path in deployment.logs()]


def test_a_keystone_that_dies_in_mid_search_is_said_with_its_log(start, tmp_path):
    deployment = start("workers=1")
    words = ("capacity", "--lab", deployment.name, "--users", "0", "--store", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-m", "loadstone", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if "/s done" in line:  # the first trial has ended
                break
        for pid in deployment.pids():
            os.kill(pid, signal.SIGKILL)
        _, told = process.communicate(timeout=500)
    assert process.returncode == 3, told
    assert "uwsgi" in told
    assert "Traceback" not in told
    show = ["results", "show", "latest", "--json", "-", "--store", str(tmp_path)]
    shown = subprocess.run(
        [sys.executable, "-m", "loadstone", *show], check=True, capture_output=True, text=True
    )
    kept = json.loads(shown.stdout)
    assert kept["status"] == "failed"
    assert "uwsgi" in kept["failure"]
    assert only(kept)["trials"]


@pytest.mark.verify
def test_the_demo_ends_with_a_report_and_leaves_no_process(lab_home, tmp_path):  # noqa: ARG001
    before = {process.pid for process in psutil.process_iter()}
    ended = subprocess.run(
        [sys.executable, "-m", "loadstone", "demo", "--budget", "20s", "--store", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    page = Path(ended.stdout.splitlines()[-1])
    assert page.is_file()
    text = page.read_text()
    for title in ("Token issue", "Token validation"):
        assert title in text
    assert not re.findall(r"""(?:src|href)=["']https?:""", text)
    home = os.environ["LOADSTONE_HOME"]
    left = [
        process
        for process in psutil.process_iter(["pid", "cmdline"])
        if process.pid not in before
        and home in " ".join(process.info["cmdline"] or [])
        and "deployments/demo" in " ".join(process.info["cmdline"] or [])
    ]
    assert left == []
    secrets_left = Path(home) / "lab/deployments/demo/secret"
    assert not secrets_left.exists() or not list(secrets_left.iterdir())
