"""Rally's own task files, as they are: checked, and those that need only Keystone carried out."""

import json
import os
import re
import subprocess
import sys

import pytest
from documents import workloads
from kept_names import kept_names
from rally_files import NEW, OLD, RALLY

from loadstone.cli import main
from loadstone.cloud import connect, from_environment
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind

pytestmark = pytest.mark.live

KEYSTONE = (
    "add-and-remove-user-role",
    "authenticate-user-and-validate-token",
    "create-add-and-list-user-roles",
    "create-and-delete-ec2credential",
    "create-and-delete-role",
    "create-and-delete-service",
    "create-and-delete-user",
    "create-and-get-role",
    "create-and-list-ec2credentials",
    "create-and-list-roles",
    "create-and-list-services",
    "create-and-list-tenants",
    "create-and-list-users",
    "create-and-update-user",
    "create-tenant",
    "create-tenant-with-users",
    "create-update-and-delete-tenant",
    "create-user",
    "create-user-set-enabled-and-delete",
    "create-user-update-password",
    "get-entities",
)
# Service of Rally's -> how the catalog would call it.
VALIDATED = {
    "ceilometer": "metering",
    "cinder": "block-storage",
    "glance": "image",
    "heat": "orchestration",
    "neutron": "network",
    "nova": "compute",
    "octavia": "load-balancer",
}
TOKENS = tuple(f"token-validate-{name}" for name in VALIDATED)
DUMMY = (
    "dummy",
    "dummy-exception",
    "dummy-exception-probability",
    "dummy-failure",
    "dummy-output",
    "dummy-random-action",
    "dummy-random-fail-in-atomic",
    "dummy-timed-atomic-actions",
)
RUNNERS = (
    "constant/constant-for-duration",
    "constant/constant-timeout",
    "rps/rps",
    "serial/serial",
)
BIG, METRICS = "tasks/openstack/task.yaml", "tasks/openstack_metrics/task.yaml"
BIG_ARGUMENTS = '{"service_list": ["authentication", "keystone"]}'
METRICS_ARGUMENTS = json.dumps(
    dict.fromkeys(("enable_nova", "enable_glance", "enable_cinder", "enable_neutron"), 0)
)


def both(folder, names):
    """Give the path of each sample in both formats."""
    return [f"samples/tasks/{folder}/{name}.{kind}" for name in names for kind in ("json", "yaml")]


NEEDS_KEYSTONE = [
    f"{version}/{path}"
    for version in (NEW, OLD)
    for path in (
        *both("scenarios/authenticate", ["keystone"]),
        *both("scenarios/keystone", KEYSTONE),
        *both("sla", ["create-and-delete-user"]),
        *both("contexts", ["api-versions", "dummy-context", "quotas", "roles", "users"]),
    )
]
NEEDS_MORE = [
    f"{version}/{path}"
    for version, names in ((NEW, TOKENS), (OLD, (*TOKENS, "token-validate-monasca")))
    for path in both("scenarios/authenticate", names)
]
SLEEPING = [
    f"{version}/{path}" for version in (RALLY, NEW, OLD) for path in both("runners", RUNNERS)
]
ONLY_CHECKED = [
    f"{RALLY}/{path}"
    for path in (
        *both("contexts", ["dummy-context"]),
        *both("scenarios/dummy", DUMMY),
        *both("scenarios/requests", ["check-random-request", "check-request"]),
        *both("sla", ["dummy"]),
    )
]
WITH_ARGUMENTS = [
    (f"{version}/{path}", arguments)
    for version, path, arguments in (
        (NEW, BIG, BIG_ARGUMENTS),
        (OLD, METRICS, METRICS_ARGUMENTS),
        (OLD, BIG, BIG_ARGUMENTS),
        (NEW, METRICS, METRICS_ARGUMENTS),
    )
]
# SQLite allows one writer.
ONE = ("--at-most", "times=1,duration=1,concurrency=1")
SMALL = ("--at-most", "times=1,concurrency=1,tenants=1,users_per_tenant=1")
# What samples expect to find in the cloud.
EXPECTED = (
    (ResourceKind.ROLE, "role"),
    (ResourceKind.DOMAIN, "project"),
    (ResourceKind.DOMAIN, "demo"),
)
# Two forms of file, in JSON and YAML, with and without a context.
IN_THE_GATE = (
    f"{NEW}/samples/tasks/scenarios/authenticate/keystone.yaml",
    f"{NEW}/samples/tasks/scenarios/keystone/create-and-delete-user.json",
    f"{OLD}/samples/tasks/scenarios/keystone/add-and-remove-user-role.yaml",
    f"{OLD}/samples/tasks/contexts/quotas.json",
)
CARRIED_OUT = [
    pytest.param(file, marks=() if file in IN_THE_GATE else pytest.mark.verify)
    for file in NEEDS_KEYSTONE
]


@pytest.fixture(scope="module")
def cloud(module_keystone):
    """A Keystone with what samples expect; at the end it holds what it held before."""
    variables = module_keystone.environment_variables()
    with connect(from_environment(variables, "--lab test")) as access:
        identity = Identity(access)
        things = [identity.create(kind, name, {}) for kind, name in EXPECTED]
        before = kept_names(identity)
        yield variables
        assert kept_names(identity) == before
        for thing in things:
            identity.remove(thing)


@pytest.fixture
def loadstone(rally_files, cloud, tmp_path, monkeypatch, capfd):
    """The command line in this process; starting it for each file takes longer than the file."""
    for name, value in {**cloud, "LOADSTONE_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(rally_files)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["loadstone", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


# One of two hosts at random, which no plan of the engine can send.
SEVERAL_HOSTS = "requests/check-random-request"


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_every_sample_but_one_passes_the_check(suffix, rally_files, capsys, monkeypatch):
    monkeypatch.chdir(rally_files)
    failures = []
    for file in (*NEEDS_KEYSTONE, *NEEDS_MORE, *SLEEPING, *ONLY_CHECKED):
        if file.endswith(suffix):
            monkeypatch.setattr("sys.argv", ["loadstone", "task", "check", file])
            with pytest.raises(SystemExit) as ended:
                main()
            stdout, stderr = capsys.readouterr()
            if SEVERAL_HOSTS in file:
                assert ended.value.code == 2
                assert "all must have the same scheme, host, port" in stdout
            elif ended.value.code or f"{file}: good; " not in stdout:
                failures.append(f"{file}: exit {ended.value.code}: {stdout}{stderr}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("file", CARRIED_OUT)
def test_a_sample_that_needs_only_keystone_succeeds(file, loadstone):
    code, out, err = loadstone("run", file, *SMALL, "--json", "-")
    assert code == 0, out + err
    all_is_well(json.loads(out))


@pytest.mark.verify
@pytest.mark.parametrize(("file", "arguments"), WITH_ARGUMENTS)
def test_the_big_tasks_with_macros_pass_and_succeed(file, arguments, loadstone):
    code, out, _ = loadstone("task", "check", file, "--task-args", arguments)
    assert code == 0, out
    code, out, err = loadstone("run", file, "--task-args", arguments, *SMALL, "--json", "-")
    assert code == 0, out + err
    result = json.loads(out)
    all_is_well(result)
    assert len(workloads(result)) == (8 if file.endswith(BIG) else 1)


def all_is_well(result):
    for workload in workloads(result):
        (runner,) = workload["given"]["runner"].values()
        total = workload["total"]
        assert total["ok"] == total["count"] == runner.get("times", 1) <= 2, workload
        assert workload["pass_sla"]


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(one, marks=() if "nova" in one else pytest.mark.verify)
        for one in NEEDS_MORE
        if one.startswith(NEW) and one.endswith(".yaml")
    ],
)
def test_a_sample_that_needs_more_names_what_is_missing(file, loadstone):
    code, out, err = loadstone("run", file, *SMALL)
    assert code == 3, out + err
    service = re.search(r"token-validate-(\w+)", file)[1]
    assert f"needs a service of type {VALIDATED[service]}, and" in " ".join(err.split())
    assert "creating" not in err


def command(files, cloud, file, home, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "loadstone", "run", file, *words, "--json", "-"],
        env={**os.environ, **cloud, "LOADSTONE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=files,
    )


@pytest.mark.verify
def test_the_samples_of_runners_end_as_their_files_say(rally_files, cloud, tmp_path):
    # They sleep for five seconds an iteration: all at once.
    started = {
        file: command(
            rally_files,
            cloud,
            file,
            tmp_path / str(number),
            "--at-most",
            "times=1,duration=1,concurrency=1",
            "--anyway",
        )
        for number, file in enumerate(SLEEPING)
    }
    for file, running in started.items():
        out, err = running.communicate(timeout=500)
        # Iterations that last longer than their time-out fail, and may not.
        expected = 1 if "timeout" in file else 0
        assert running.returncode == expected, file + err
        (workload,) = workloads(json.loads(out))
        assert workload["total"]["count"] == 1
        assert workload["total"]["ok"] == 1 - expected


def test_the_command_itself_carries_a_sample_out(rally_files, cloud, tmp_path):
    running = command(rally_files, cloud, IN_THE_GATE[0], tmp_path / "home", *SMALL)
    out, err = running.communicate(timeout=500)
    assert running.returncode == 0, err
    assert "Traceback" not in err
    all_is_well(json.loads(out))
