"""Rally's own task files, as they are, pass the check."""

import json

import pytest
from rally_files import NEW, OLD, RALLY

from loadstone.cli import main

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
    for version in (NEW, OLD)
    for path, arguments in ((BIG, BIG_ARGUMENTS), (METRICS, METRICS_ARGUMENTS))
]


@pytest.mark.parametrize("file", [*NEEDS_KEYSTONE, *NEEDS_MORE, *SLEEPING, *ONLY_CHECKED])
def test_a_sample_passes_the_check(file, rally_files, capsys, monkeypatch):
    monkeypatch.chdir(rally_files)
    monkeypatch.setattr("sys.argv", ["loadstone", "task", "check", file])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().out
    assert not ended.value.code, told
    assert f"{file}: good; " in told


@pytest.mark.parametrize(("file", "arguments"), WITH_ARGUMENTS)
def test_the_big_tasks_with_macros_pass_the_check(
    file, arguments, rally_files, capsys, monkeypatch
):
    monkeypatch.chdir(rally_files)
    words = ["loadstone", "task", "check", file, "--task-args", arguments]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().out
    assert not ended.value.code, told
    assert f"workloads: {8 if file.endswith(BIG) else 1}" in told
