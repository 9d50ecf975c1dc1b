"""The lab against the real thing: Keystone from PyPI, on uWSGI and SQLite."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import yaml
from lab_client import quietly, token_of, until, validation_of

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment, processes, watcher
from loadstone.lab.deployment import Deployment, LabSettings
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.manage import CommandContext
from loadstone.lab.keystone.options import CheckedOptions
from loadstone.system import locks, paths

pytestmark = pytest.mark.live

LOADSTONE = [sys.executable, "-m", "loadstone"]
SMALL = [("workers", "1"), ("hash-rounds", "4")]


def small(*pairs: tuple[str, str]) -> LabSettings:
    return settings.read([*SMALL, *pairs])


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LOADSTONE, *words], capture_output=True, text=True, check=False)


def test_a_token_is_issued_and_validated(lab_keystone: Deployment) -> None:
    token = token_of(lab_keystone.environment_variables())
    answer = validation_of(lab_keystone.url, token)
    assert answer.status_code == 200
    assert answer.json()["token"]["user"]["name"] == "admin"
    [identity] = answer.json()["token"]["catalog"]
    assert {e["url"] for e in identity["endpoints"]} == {f"{lab_keystone.url}/"}


def test_the_facts_say_what_is_measured(lab_keystone: Deployment) -> None:
    facts = dict(lab_keystone.facts())
    assert facts["release"] == "keystone 30.0.0"
    assert facts["workers"] == "2"
    assert facts["password hash"] == "bcrypt, 4 rounds (read from a stored credential)"
    assert facts["url"] == lab_keystone.url
    assert facts["token"] == "fernet"
    assert {"web server", "threads", "database", "storage", "cache", "python"} <= set(facts)
    assert lab_keystone.python.exists()


def test_master_and_workers_are_all_counted(lab_keystone: Deployment) -> None:
    assert len(lab_keystone.pids()) == 3
    assert lab_keystone.summary().memory_mb > 50
    assert lab_keystone.failure() is None


def test_the_list_names_it(lab_keystone: Deployment) -> None:
    rows = json.loads(command("lab", "list", "--json", "-").stdout)
    [row] = [row for row in rows if row["name"] == lab_keystone.name]
    assert row["state"] == "running"
    assert row["url"] == lab_keystone.url
    assert lab_keystone.url in command("lab", "list").stdout


def test_a_shell_can_evaluate_env(lab_keystone: Deployment) -> None:
    printed = command("lab", "env", lab_keystone.name).stdout
    pairs = [word for line in printed.splitlines() for word in shlex.split(line)[1:]]
    assert dict(pair.split("=", 1) for pair in pairs) == lab_keystone.environment_variables()


def test_clouds_yaml_names_the_same_cloud(lab_keystone: Deployment) -> None:
    printed = command("lab", "env", lab_keystone.name, "--clouds-yaml").stdout
    entry = yaml.safe_load(printed)["clouds"][lab_keystone.name]
    assert entry["auth"]["auth_url"] == lab_keystone.url
    assert entry["auth"]["password"] == lab_keystone.environment_variables()["OS_PASSWORD"]


def test_logs_shows_the_log_of_a_part(lab_keystone: Deployment) -> None:
    shown = command("lab", "logs", lab_keystone.name, "uwsgi", "-n", "400").stdout
    assert "WSGI app 0" in shown
    refused = command("lab", "logs", lab_keystone.name, "nginx")
    assert refused.returncode == 2
    assert "uwsgi" in refused.stderr


def test_the_password_stands_in_one_private_file_only(lab_keystone: Deployment) -> None:
    secret = lab_keystone.environment_variables()["OS_PASSWORD"].encode()
    holders = [
        path
        for path in lab_keystone.folder.rglob("*")
        if path.is_file() and secret in path.read_bytes()
    ]
    assert [path.name for path in holders] == ["admin-password"]
    assert holders[0].stat().st_mode & 0o777 == 0o600
    for pid in lab_keystone.pids():
        assert secret not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret not in Path(f"/proc/{pid}/environ").read_bytes()


def test_one_that_ends_with_its_command_is_not_handed_to_another(
    lab_keystone: Deployment,
) -> None:
    with pytest.raises(EnvironmentUnusable, match="belongs to a command that ends it"):
        deployment.up(lab_keystone.name, small(), quietly)


def test_one_that_runs_is_not_taken_over(lab_keystone: Deployment) -> None:
    code = (
        "import sys; from loadstone.lab import deployment\n"
        "deployment.up(sys.argv[1], deployment.LabSettings(), print, owned=True)"
    )
    taken = subprocess.run(
        [sys.executable, "-c", code, lab_keystone.name], capture_output=True, text=True, check=False
    )
    assert "another uses it" in taken.stderr
    assert lab_keystone.failure() is None


def test_down_leaves_no_process_and_no_password(name: str) -> None:
    first = deployment.up(name, small(), quietly)
    before = first.environment_variables()
    members = [processes.family(r.process) for r in first.state.records if r.process]
    deployment.down(name)
    assert not any(processes.alive(process) for family in members for process in family)
    assert not (first.folder / "secret").exists()
    with pytest.raises(EnvironmentUnusable, match="not running"):
        deployment.find(name)
    # And again, from what is prepared: the same port and data, another password.
    second = deployment.up(name, small(), quietly)
    after = second.environment_variables()
    assert after["OS_AUTH_URL"] == before["OS_AUTH_URL"]
    assert after["OS_PASSWORD"] != before["OS_PASSWORD"]
    token = token_of(after)
    assert validation_of(second.url, token).status_code == 200
    events = requests.get(
        f"{second.url}/OS-REVOKE/events", headers={"X-Auth-Token": token}, timeout=30
    )
    assert events.json()["events"] == []


def test_a_killed_server_is_noticed(name: str) -> None:
    started = deployment.up(name, small(), quietly)
    os.kill(started.state.records[-1].process.pid, signal.SIGKILL)
    until(lambda: started.failure() is not None, "the death was not noticed")
    assert "uwsgi" in started.failure()
    assert "uwsgi.log" in started.failure()
    with pytest.raises(EnvironmentUnusable, match="died"):
        deployment.find(name)
    deployment.down(name)
    assert processes.marked(started.folder) == ()


def test_a_crash_at_start_shows_the_line_that_explains_it(name: str) -> None:
    refused = command("lab", "up", name, "--with", "conf.token.provider=nonsense")
    assert refused.returncode == 3
    assert "Unable to find 'nonsense' driver" in refused.stderr
    assert "Traceback" not in refused.stderr.splitlines()[0]
    assert processes.marked(deployment.load(name).folder) == ()


def test_a_server_that_cannot_load_shows_its_log(name: str) -> None:
    folder = paths.labs() / "deployments" / name
    # Only the web server looks for modules here; Keystone's commands do not.
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "flask.py").write_text("raise ImportError('flask is broken')\n")
    with pytest.raises(EnvironmentUnusable, match=r"ended while starting[\s\S]*uwsgi\.log"):
        deployment.up(name, small(), quietly)
    assert processes.marked(folder) == ()


def test_a_port_that_is_taken_is_named(lab_keystone: Deployment, name: str) -> None:
    port = lab_keystone.url.split(":")[2].split("/")[0]
    refused = command("lab", "up", name, "--port", port)
    assert refused.returncode == 3
    assert f"port {port}" in refused.stderr
    assert not lab_keystone.folder.with_name(name).exists()


def test_an_unknown_lab_is_answered_with_the_known_ones(lab_keystone: Deployment) -> None:
    refused = command("lab", "env", "nowhere")
    assert refused.returncode == 2
    assert lab_keystone.name in refused.stderr


OWNER = """
import sys, time
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
chosen = settings.read([("workers", "1"), ("hash-rounds", "4")])
deployment.up(sys.argv[1], chosen, print, owned=True)
print("up", flush=True)
time.sleep(600)
"""


def await_end(folder: Path) -> None:
    until(lambda: not processes.marked(folder), "processes outlived their owner")
    until(lambda: not (folder / "secret").exists(), "the password outlived its owner")
    # What ended them may still be writing that down.
    with locks.held(folder / watcher.LOCK):
        pass


def test_what_a_killed_owner_leaves_is_ended(name: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, name], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        until(lambda: owner.stdout.readline() == "up\n", "the owner did not come up")
        folder = deployment.find(name).folder
        owner.kill()
    await_end(folder)


def test_a_start_that_is_killed_half_way_leaves_nothing(name: str) -> None:
    with subprocess.Popen(
        [*LOADSTONE, "lab", "up", name, "--workers", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as starting:
        assert starting.stderr is not None
        until(lambda: "waiting for uwsgi" in starting.stderr.readline(), "uwsgi was not reached")
        folder = deployment.load(name).folder
        starting.kill()
    await_end(folder)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("conf.tokn.expiration=10", r"has no \[tokn\]; did you mean conf\.token\.expiration\?"),
        ("conf.token.expirationn=10", r"no option expirationn in \[token\]; did you mean conf"),
        ("conf.DEFAULT.expiration=10", r"did you mean conf\.token\.expiration\?"),
        ("conf.token.expiration=soon", "does not take it: .*soon"),
        ("conf.database.max_pool_sizes=5", r"did you mean conf\.database\.max_pool_size\?"),
    ],
)
def test_a_setting_that_the_release_does_not_know_is_refused(
    lab_keystone: Deployment,  # noqa: ARG001 (the environment is there)
    word: str,
    words: str,
) -> None:
    with pytest.raises(InvalidInput, match=rf"^{word.partition('=')[0]}.*{words}"):
        deployment.up("mistyped", small(settings.split(word)), lambda _: None)
    assert "mistyped" not in [one.name for one in deployment.every()]


def test_settings_of_keystones_libraries_are_known(lab_keystone: Deployment) -> None:
    pairs = ("conf.token.expiration=60", "conf.cache.expiration_time=5", "conf.DEFAULT.debug=true")
    known = small(*(settings.split(pair) for pair in pairs))
    place = CommandContext(
        lab_keystone.python, lab_keystone.folder, lab_keystone.folder / "check.log"
    )
    options = CheckedOptions(place, known.release, known.conf)
    options.prepare(lambda _: None)
    said: list[str] = []
    options.prepare(said.append)
    assert said == []  # looked at once
