"""Real Rally and we, side by side: one task file, one Keystone, and that Keystone's own log."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from lab_client import quietly, until
from real_rally import Rally
from stated import stated

from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.lab.parts import uwsgi

# Rally starts and prepares for minutes where the machine is busy.
pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

# Scenarios and arguments as in the samples of rally-openstack 4.1.0.
TASKS: dict[str, dict[str, object]] = {
    "Authenticate.keystone": {},
    "KeystoneBasic.authenticate_user_and_validate_token": {},
    "KeystoneBasic.create_user": {},
    "KeystoneBasic.create_delete_user": {},
    "KeystoneBasic.create_user_update_password": {},
    "KeystoneBasic.create_and_list_users": {},
    "KeystoneBasic.create_tenant_with_users": {"users_per_tenant": 2},
    "KeystoneBasic.add_and_remove_user_role": {},
    "KeystoneBasic.create_and_delete_ec2credential": {},
    "KeystoneBasic.create_and_list_services": {
        "service_type": "Rally_test_type",
        "description": "test_description",
    },
    "KeystoneBasic.get_entities": {},
}
# A login, captured values with clean-up, and a context; real Rally takes seconds for each.
FEW = (
    "Authenticate.keystone",
    "KeystoneBasic.create_delete_user",
    "KeystoneBasic.add_and_remove_user_role",
)
TIMES = 2


def task(names: Sequence[str]) -> dict[str, object]:
    """One iteration at a time, so that each request of the log is of one iteration."""
    return {
        "version": 2,
        "title": "Beside Rally",
        "subtasks": [
            {
                "title": name,
                "scenario": {name: TASKS[name]},
                "contexts": {"users": {"tenants": 1, "users_per_tenant": 1}},
                "runner": {"constant": {"times": TIMES, "concurrency": 1}},
            }
            for name in names
        ],
    }


MARK = "logged-request"
FORMAT = f"logformat = {MARK} %(tmicros) %(method) %(uri) %(status)"
LOGGED = re.compile(rf"{MARK} (\d+) ([A-Z]+) (\S+) (\d+)$", re.MULTILINE)
END = "/the-log-ends-here"
# Both clocks have an error, and no request takes less than this.
LATE_S = 0.003
# Our timestamps begin with the load, whose start may be noticed this much late on a busy machine.
NOTICED_S = 1.0
# What differs from iteration to iteration.
ID = re.compile(r"(?<=/)[0-9a-f]{32,64}(?=/|$)")
# What a request ends with that does what it says.
ENDS = {"GET": 200, "POST": 201, "PUT": 204, "PATCH": 200, "DELETE": 204}

Reports = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Keystone:
    variables: dict[str, str]
    log: Path

    def served(self) -> list[tuple[float, str]]:
        """Give when each request came, and "GET /v3/users/ID 200"."""
        requests.get(self.variables["OS_AUTH_URL"].replace("/v3", END), timeout=30)
        until(lambda: END in self.log.read_text(), "the log's end")
        return [
            (int(came_us) / 1e6, f"{method} {ID.sub('ID', path)} {status}")
            for came_us, method, path, status in LOGGED.findall(self.log.read_text())
        ]


@dataclass(frozen=True)
class Told:
    """What was reported of the task by whom it was carried out, and the server's log of it."""

    workloads: Reports
    served: list[tuple[float, str]]

    def actions(self, name: str) -> list[Any]:
        """Give name, count in an iteration, iterations, success, and those inside of it."""
        return _tree(self.workloads[name]["statistics"]["durations"]["atomics"])

    def requests(self, name: str) -> list[list[str]]:
        """Return the requests in the server's log during each iteration, by Rally's timestamps."""
        begun = [
            (one["timestamp"] - LATE_S, one["duration"]) for one in self.workloads[name]["data"]
        ]
        times = [(begun_s, begun_s + duration_s) for begun_s, duration_s in begun]
        return [[said for came, said in self.served if a <= came <= b] for a, b in times]

    def asked(self, name: str, expected: list[str]) -> list[str]:
        """Return the expected requests if the server logged them in a row; else all of the window.

        The window may begin and end with requests of the context.
        """
        data = self.workloads[name]["data"]
        first_s = data[0]["timestamp"] - NOTICED_S
        last_s = data[-1]["timestamp"] + data[-1]["duration"] + NOTICED_S
        around = [said for came, said in self.served if first_s <= came <= last_s]
        count = len(expected)
        parts = [around[at : at + count] for at in range(len(around) - count + 1)]
        return expected if expected in parts else around


def _tree(actions: list[dict[str, Any]]) -> list[Any]:
    return [
        (
            one["name"],
            one["count_per_iteration"],
            one["data"]["iteration_count"],
            one["data"]["success"],
            _tree(one["children"]),
        )
        for one in actions
    ]


@pytest.fixture(scope="module")
def keystone(lab_home) -> Iterator[Keystone]:  # noqa: ARG001
    """A Keystone whose web server, one process, logs each request."""
    name = f"beside-{os.getpid()}"
    chosen = settings.read([("workers", "1"), ("hash-rounds", "4")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uwsgi, "INI", uwsgi.INI.replace("{requests}", FORMAT))
        started = deployment.up(name, chosen, quietly, owned=True)
    (log,) = (path for part, path in started.logs() if part == "uwsgi")
    yield Keystone(started.environment_variables(), log)
    deployment.down(name, purge=True)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(FEW, id="few"),
        pytest.param(tuple(TASKS), id="all", marks=pytest.mark.verify),
    ],
)
def names(request) -> Sequence[str]:
    return request.param


@pytest.fixture(scope="module")
def file(tmp_path_factory, names) -> Path:
    path = tmp_path_factory.mktemp("beside") / "task.json"
    path.write_text(json.dumps(task(names)))
    return path


def told(report: Path, keystone: Keystone) -> Told:
    subtasks = json.loads(report.read_text())["tasks"][0]["subtasks"]
    workloads = [workload for subtask in subtasks for workload in subtask["workloads"]]
    by_name = {next(iter(one["scenario"])).partition("@")[0]: one for one in workloads}
    return Told(by_name, keystone.served())


@pytest.fixture(scope="module")
def rally(rally_python, keystone, file) -> Told:
    """Of real Rally."""
    run = Rally(rally_python, file.parent)
    run("env", "create", "--name", "beside", "--from-sysenv", variables=keystone.variables)
    run("task", "start", str(file))
    report = file.with_name("rally.json")
    run("task", "report", "--json", "--out", str(report))
    return told(report, keystone)


def ours(keystone: Keystone, file: Path, *words: str) -> Told:
    report = file.with_name("ours.json")
    home = {"LOADSTONE_HOME": str(file.parent / "home")}
    ended = subprocess.run(
        [sys.executable, "-m", "loadstone", "run", file, "--rally-json", report, *words],
        env={**os.environ, **keystone.variables, **home},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return told(report, keystone)


@pytest.fixture(scope="module")
def as_rally(keystone, file) -> Told:
    """Of ourselves, with Rally's requests."""
    return ours(keystone, file, "--rally-requests")


@pytest.fixture(scope="module")
def plain(keystone, file) -> Told:
    """Of ourselves, with no more than the scenarios say."""
    return ours(keystone, file)


def test_rally_and_we_make_the_same_actions_as_often_with_the_same_success(names, rally, as_rally):
    ours, theirs = ({name: told.actions(name) for name in names} for told in (as_rally, rally))
    assert ours == theirs
    for name in names:
        assert [one["error"] for one in as_rally.workloads[name]["data"]] == [[]] * TIMES
        assert [one["error"] for one in rally.workloads[name]["data"]] == [[]] * TIMES


def test_the_server_is_asked_the_same_by_rally_and_by_us(names, rally, as_rally):
    for name in names:
        assert len(rally.requests(name)[0]) > len(stated()[name])
        expected = [said for requests in rally.requests(name) for said in requests]
        assert as_rally.asked(name, expected) == expected


def test_without_rallys_requests_the_server_is_asked_what_is_stated(names, rally, plain):
    for name in names:
        requests = [request.split() for request in stated()[name]]
        said = [f"{method} /v3{path} {ENDS[method]}" for method, path in requests]
        assert plain.asked(name, said * TIMES) == said * TIMES
        assert plain.actions(name) == rally.actions(name)
