"""`loadstone run --resume-users`, after a kill while users were made."""

import os
import re
import subprocess
import sys
import threading

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.run import resume
from loadstone.store.store import Store

TASK = """
Authenticate.keystone:
  - runner: {type: constant, times: 24, concurrency: 2}
    context:
      users: {tenants: 2, users_per_tenant: 12, resource_management_workers: 2}
"""
MADE = ("POST", "/v3/users")


@pytest.fixture
def killed(loadstone, fake, write):  # noqa: ARG001  (loadstone sets the environment)
    """A run that was killed while it made the twelfth of 24 users."""
    arrived, go = threading.Event(), threading.Event()

    def count(method, path):
        if (method, path) == MADE and fake.calls[MADE] == 12:
            arrived.set()
            go.wait(timeout=500)

    fake.disturb = count
    words = [sys.executable, "-m", "loadstone", "run", write(TASK)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=dict(os.environ)) as process:
        assert arrived.wait(timeout=500)
        process.kill()
    go.set()
    fake.disturb = lambda _method, _path: None
    fake.idle.wait(timeout=500)
    fake.calls.clear()


def test_the_next_run_goes_on_with_the_users(loadstone, fake, killed):  # noqa: ARG001
    told = loadstone("run", "task.yaml", "--resume-users", "latest")
    assert told.returncode == 0, told.stderr
    found = re.search(r"(\d+) of them are there already", told.stderr)
    assert found is not None
    assert int(found[1]) >= 10
    assert fake.calls[MADE] <= 24 - int(found[1])
    assert "100 %     24" in told.stdout
    assert not any(fake.things.values())
    assert "left nothing" in loadstone("results", "clean", "latest").stdout
    again = loadstone("run", "task.yaml", "--resume-users", "latest")
    assert again.returncode == 2
    assert "left no users to resume with" in again.stderr


def test_what_a_resumed_run_leaves_is_found_under_either_id(loadstone, fake, killed):  # noqa: ARG001
    fake.disturb = lambda method, path: (
        403 if method == "DELETE" and "users" in path and fake.calls[method, path] < 2 else None
    )
    told = loadstone("run", "task.yaml", "--resume-users", "latest")
    assert told.returncode == 1, told.stderr
    assert len(fake.names("users")) == 24
    assert "and 5 more" in told.stderr  # 24 users and their domain, 20 of which are named
    fake.disturb = lambda _method, _path: None
    assert loadstone("results", "clean", "latest").returncode == 0
    assert not any(fake.things.values())


def test_a_store_without_symbolic_links_is_one_line(tmp_path):
    # A folder that is not there stands for a file system that refuses the link.
    with pytest.raises(EnvironmentUnusable, match=r"--resume-users: .* cannot be a symbolic link"):
        resume.link(tmp_path / "none", tmp_path)


def test_without_a_link_the_other_runs_users_are_not_called_removed(
    loadstone,
    fake,
    killed,  # noqa: ARG001
    monkeypatch,
):
    def refused(*_):
        raise EnvironmentUnusable("no symbolic links here")

    marked = []
    with monkeypatch.context() as patched:
        patched.setattr(resume, "link", refused)
        patched.setattr(Store, "mark_clean", lambda _, run_id: marked.append(run_id))
        told = loadstone("run", "task.yaml", "--resume-users", "latest")
    assert (told.returncode, marked) == (3, [])
    assert "no symbolic links here" in told.stderr
    assert fake.names("users")
