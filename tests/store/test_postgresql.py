"""PostgreSQL as the store of a team: the command line, other machines, and what goes wrong."""

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from urllib.parse import quote_plus

import command_server
import pytest
from command_line import CommandLine, environment
from known_service import serving
from private_postgresql import IN_URL, PASSWORD, USER
from realistic import keystone

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.journal import JOURNAL, read
from loadstone.store import database, listing, location, owner
from loadstone.store.store import Store

RESULT, SAMPLES = keystone()
# As it is, in a URL and in JSON.
SPELLINGS = {PASSWORD, IN_URL, quote_plus(PASSWORD), json.dumps(PASSWORD)[1:-1]}
TASK = {
    "KeystoneBasic.create_user": [
        {
            "runner": {"type": "constant", "times": 6, "concurrency": 2},
            "sla": {"failure_rate": {"max": 0}},
        }
    ]
}
STUDY = """\
title: The reference service
factors: {workers: [1, 2]}
cells: [{workers: 2}]
quick: {words: the reference service, levels: {workers: [1]}, repeats: 1}
reference: {}
measurement:
  kind: task
  task:
    Authenticate.keystone:
      - {runner: {type: serial, times: 2}}
"""


class Team:
    """The command line of one member of a team, with a home of its own."""

    def __init__(self, home, url, store):
        home.mkdir(exist_ok=True)
        self.home, self._environment = home, environment(url, home) | {location.VARIABLE: store}

    def __call__(self, *words, **variables):
        return command_server.run(words, self._environment | variables, self.home)


@pytest.fixture
def url(postgresql, tmp_path):
    return postgresql.url(postgresql.new_database(), tmp_path / "files")


@pytest.fixture
def kept(url):
    """A run with one trial, kept from this machine."""
    with Store.open(location.read(url)) as store:
        store.begin(RESULT)
        store.keep_trial(RESULT.run_id, 0, RESULT.measurements[0].trials[0], SAMPLES[0, 1])
    return RESULT.run_id


def as_if_from(host, url):
    with Store.open(location.read(url)) as store, database.writing(store._engine) as connection:
        connection.exec_driver_sql(f"UPDATE runs SET owner = '{host}:1:2'")


def every_text(postgresql, url):
    """All that the database holds, as text."""
    with postgresql.connect(location.read(url).database.database) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchall()
        return "".join(
            row[0]
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {table} t").fetchall()
        )


def assert_hidden(*texts):
    for spelling in SPELLINGS:
        assert not [text for text in texts if spelling in text]


def assert_one_line(ended, code, words):
    assert ended.returncode == code, ended.stderr
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert_hidden(ended.stderr)


@pytest.mark.timeout(900)
def test_a_team_measures_and_looks_with_one_database(postgresql, url, tmp_path):
    task, study = tmp_path / "task.json", tmp_path / "study.yaml"
    task.write_text(json.dumps(TASK))
    study.write_text(STUDY)
    with serving("--user=known", "--project=known") as (port, _):
        team = Team(tmp_path / "home", f"http://127.0.0.1:{port}/v3", url)
        said = [
            team("run", str(task), "--json", "task-result.json"),
            team("run", str(task), "--store", url, "--json", "-"),
            team("study", "run", str(study), "--quick", "--json", "study.json"),
            team("study", "list"),
        ]
    assert [one.returncode for one in said] == [0] * 4, said
    assert json.loads((team.home / "study.json").read_text())["missing"] == 0
    listed = team("results", "list", "--json", "-")
    assert len(json.loads(listed.stdout)) == 3
    first, second = (
        json.loads(text)["run_id"]
        for text in ((team.home / "task-result.json").read_text(), said[1].stdout)
    )
    shown = team("results", "show", second, "--json", "-")
    assert "--store 'postgresql://***@" in json.loads(shown.stdout)["command"]
    later = [
        team("report", first, second, "-o", "both.html"),
        team("report", first, "--as", "rally-json"),
        team("results", "sla-check", first),
        team("results", "trends"),
        team("results", "clean", first),
        team("results", "export", first, "run.zip"),
        team("results", "delete", first),
        team("results", "import", "run.zip"),
    ]
    assert [one.returncode for one in later] == [0] * len(later), later
    everything = [*said, listed, shown, *later]
    assert_hidden(*(text for one in everything for text in (one.stdout, one.stderr)))
    assert_hidden(every_text(postgresql, url))
    task.unlink()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    for spelling in SPELLINGS:
        assert not [path for path in files if spelling.encode() in path.read_bytes()]


def test_the_password_may_come_from_the_environment_and_is_hidden_then(postgresql, tmp_path):
    url = postgresql.url(postgresql.new_database(), tmp_path / "files", password="")
    ended = Team(tmp_path / "home", "", url)("results", "list", PGPASSWORD=PASSWORD)
    assert ended.returncode == 0, ended.stderr
    code = (
        "from loadstone.store import location, store\n"
        "print(store.Store.open(location.usual()).redaction.values)"
    )
    known = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {location.VARIABLE: url, "PGPASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=True,
    )
    assert PASSWORD in known.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("report", "latest"),
        ("results", "export", "latest", "run.zip"),
        ("results", "clean", "latest"),
        ("results", "delete", "latest"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_files_of_another_machine_are_said_in_one_line(postgresql, url, tmp_path, words):
    as_if_from("far-away", url)
    elsewhere = postgresql.url(location.read(url).database.database, tmp_path / "elsewhere")
    there = Team(tmp_path / "home", "", elsewhere)
    assert_one_line(there(*words), 3, f"are not in {tmp_path / 'elsewhere'}: it was measured on")
    assert RESULT.run_id in there("results", "list", "--json", "-").stdout
    assert there("results", "show", "latest").returncode == 0


def test_a_report_without_the_files_of_another_machine_says_so(postgresql, url, kept, tmp_path):
    as_if_from("far-away", url)
    elsewhere = postgresql.url(location.read(url).database.database, tmp_path / "elsewhere")
    ended = Team(tmp_path / "home", "", elsewhere)("report", kept, "-o", "report.html")
    assert_one_line(ended, 0, "without the charts of samples: the files of run")
    assert (tmp_path / "home" / "report.html").exists()


def test_a_run_of_a_machine_that_is_gone_is_deleted_by_force(postgresql, url, kept, tmp_path):
    as_if_from("far-away", url)
    elsewhere = postgresql.url(location.read(url).database.database, tmp_path / "elsewhere")
    there = Team(tmp_path / "home", "", elsewhere)
    assert there("results", "delete", kept, "--force").stdout == f"deleted {kept}\n"
    assert json.loads(there("results", "list", "--json", "-").stdout) == []


def test_a_killed_run_has_ended_for_other_machines_once_its_own_opens_the_store(url, monkeypatch):
    running = replace(RESULT, status="running", ended_at=None, measurements=())
    with monkeypatch.context() as killed, Store.open(location.read(url)) as store:
        killed.setattr(owner, "this_process", lambda: f"{socket.gethostname()}:1:0")
        store.begin(running)
    Store.open(location.read(url)).close()
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    with Store.open(location.read(url)) as seen:
        assert [one.status for one in seen.every()] == ["interrupted"]
        seen.recover()
        assert seen.get("latest").failure == listing.KILLED


def test_a_restart_of_the_server_between_two_trials_loses_nothing(postgresql, url):
    with Store.open(location.read(url)) as store:
        store.begin(replace(RESULT, status="running"))
        postgresql.stop()
        postgresql.start()
        store.keep_trial(RESULT.run_id, 0, RESULT.measurements[0].trials[0], SAMPLES[0, 1])
        store.finish(RESULT)
        assert store.get("latest").status == "finished"


def test_samples_stay_in_files_when_the_server_goes_away(postgresql, url):
    trial = RESULT.measurements[0].trials[0]
    with Store.open(location.read(url)) as store:
        store.begin(replace(RESULT, status="running"))
        postgresql.stop()
        try:
            with pytest.raises(EnvironmentUnusable, match=r"^postgresql://team@127[^\n]*refused"):
                store.keep_trial(RESULT.run_id, 0, trial, SAMPLES[0, 1])
        finally:
            postgresql.start()
        kept = replace(trial, samples_file="samples/1-001.parquet")
        assert len(store.samples(RESULT.run_id, kept)) == trial.stats.due


@pytest.mark.timeout(900)
def test_a_run_goes_on_without_its_server_and_is_recovered(postgresql, url, tmp_path):
    counts, task = tmp_path / "counts.json", tmp_path / "task.json"
    stop = tmp_path / "stopped"
    waits = f"touch {tmp_path / 'running'}; while [ ! -e {stop} ]; do sleep 0.1; done"
    workload = {
        "runner": {"type": "constant_for_duration", "concurrency": 1, "duration": 3},
        "context": {"users": {"tenants": 1, "users_per_tenant": 2}},
        "hooks": [
            {
                "name": "sys_call",
                "args": f"sh -c '{waits}'",
                "trigger": {"name": "event", "args": {"unit": "iteration", "at": [1]}},
            }
        ],
    }
    task.write_text(json.dumps({"Authenticate.keystone": [workload]}))
    with serving(f"--counts={counts}", "--user=known", "--project=known") as (port, _):
        home = tmp_path / "home"
        home.mkdir()
        process = subprocess.Popen(
            CommandLine(home).words("run", str(task)),
            env=environment(f"http://127.0.0.1:{port}/v3", home) | {location.VARIABLE: url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not (tmp_path / "running").exists():
            assert process.poll() is None, process.communicate()
        postgresql.stop()
        try:
            stop.touch()
            _, said = process.communicate(timeout=500)
        finally:
            postgresql.start()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "results cannot be written to the store: postgresql://team@127" in said
    seen = json.loads(counts.read_text())["requests"]
    assert seen["DELETE /v3/users/{id}"] == seen["POST /v3/users"] == 2
    (run,) = (tmp_path / "files" / "runs").iterdir()
    assert read(run / JOURNAL).is_done
    assert list(run.glob("samples/*.parquet"))
    with Store.open(location.read(url)) as store:
        result = store.get("latest")
    assert result.status == "finished"
    assert 1 < result.measurements[0].trials[0].stats.due < seen["POST /v3/auth/tokens"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"password": "wrong"}, "password authentication failed"),
        ({"password": ""}, "~/.pgpass, PGPASSWORD or LOADSTONE_STORE"),
        ({"database": "nowhere"}, 'database "nowhere" does not exist; create it: createdb'),
    ],
)
def test_what_the_server_refuses_is_one_line(postgresql, tmp_path, change, words):
    url = postgresql.url(**{"database": "postgres", "files": tmp_path / "files"} | change)
    ended = Team(tmp_path / "home", "", url)("results", "list", PGPASSFILE="none")
    assert_one_line(ended, 3, words)
    assert f"postgresql://{USER}@127.0.0.1" in ended.stderr


def test_a_user_who_may_not_make_tables_is_one_line(postgresql, tmp_path):
    name = postgresql.new_database()
    with postgresql.connect() as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-password'")
    url = f"postgresql://guest:guest-password@127.0.0.1:{postgresql.port}/{name}?files={tmp_path}"
    ended = Team(tmp_path / "home", "", url)("results", "list")
    assert_one_line(ended, 3, "permission denied for schema public; its user needs the right")


def test_without_psycopg_the_line_says_what_to_install(url, tmp_path):
    code = (
        "import sys\nsys.modules['psycopg'] = None\n"
        "sys.argv = ['loadstone', 'results', 'list']\nfrom loadstone.cli import main\nmain()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment("", tmp_path) | {location.VARIABLE: url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert_one_line(ended, 3, "pip install 'psycopg[binary]'")


def test_a_list_is_read_without_a_folder_for_files(url, kept, tmp_path):
    shutil.rmtree(tmp_path / "files")
    ended = Team(tmp_path / "home", "", url)("results", "list", "--json", "-")
    assert kept in ended.stdout
    assert not (tmp_path / "files").exists()
