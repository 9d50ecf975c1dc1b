"""A task file carried out on a real Keystone."""

import json
import os

import command_server
import pytest
from documents import workloads
from kept_names import kept_names

from loadstone.cloud import connect, from_environment
from loadstone.keystone.identity import Identity

pytestmark = pytest.mark.live

TASK = """
version: 2
title: Identity
subtasks:
  - title: Tokens
    workloads:
      - scenario: {Authenticate.keystone: {}}
        runner: {constant: {times: 6, concurrency: 2}}
        contexts: {users: {tenants: 2, users_per_tenant: 2, user_choice_method: round_robin}}
      - scenario: {KeystoneBasic.authenticate_user_and_validate_token: {}}
        runner: {rps: {times: 4, rps: 4}}
  - title: Users
    scenario: {KeystoneBasic.create_tenant_with_users: {users_per_tenant: 2}}
    runner: {constant: {times: 3, concurrency: 1}}
  - title: Roles
    scenario: {KeystoneBasic.create_and_delete_role: {}}
    runner: {serial: {times: 2}}
"""


def names(variables):
    with connect(from_environment(variables, "--lab test")) as access:
        return kept_names(Identity(access))


def test_a_task_runs_on_a_real_keystone_and_leaves_nothing(exclusive_keystone, tmp_path):
    variables = exclusive_keystone.environment_variables()
    before = names(variables)
    (tmp_path / "task.yaml").write_text(TASK)
    environment = {**os.environ, **variables, "LOADSTONE_HOME": str(tmp_path / "home")}
    words = ("run", "task.yaml", "--json", "-")
    ended = command_server.run(words, environment, tmp_path, timeout_s=500.0)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    loads = workloads(json.loads(ended.stdout))
    assert [one["total"]["ok"] for one in loads] == [6, 4, 3, 2]
    actions = [[row["name"] for row in one["actions"]] for one in loads]
    assert actions[:2] == [
        ["authenticate.keystone"],
        ["keystone_v3.fetch_token", "keystone_v3.validate_token"],
    ]
    assert {"keystone_v3.create_project", "keystone_v3.create_users"} <= set(actions[2])
    assert actions[3] == ["keystone_v3.create_role", "keystone_v3.delete_role"]
    assert names(variables) == before
