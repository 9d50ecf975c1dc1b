"""Containers and pods, through stand-ins that take the command lines of docker, podman, kubectl.

Like the real ones they run a program inside with `exec [-i] [--] NAME ...`, give it their input
only with -i, and end with its exit code. kubectl wants `--` before the program.
"""

import json
import os
import sys

import pytest
from click.testing import CliRunner

from loadstone.cli import loadstone

CONF = (
    "[cache]\nbackend = oslo_cache.memcache_pool\n[database]\nconnection = mysql://u:hidden@d/k\n"
)
CLIENT = """\
#!{python}
import os, subprocess, sys
from pathlib import Path

tool, words = Path(sys.argv[0]).name, sys.argv[1:]
if words[:1] != ["exec"]:
    sys.exit(f"{{tool}}: unknown command {{words}}")
words.pop(0)
stdin = subprocess.DEVNULL
while words and words[0].startswith("-"):
    flag = words.pop(0)
    if flag == "--" and tool != "kubectl":
        break
    if flag not in ("-i", "--interactive", "--stdin"):
        sys.exit(f"{{tool}}: unknown flag")
    stdin = None
name = words.pop(0)
inside = Path(sys.argv[0]).parent / "inside" / name
if not inside.is_dir():
    kinds = {{"kubectl": f'Error from server (NotFound): pods "{{name}}" not found'}}
    sys.exit(kinds.get(tool, f"Error response from daemon: No such container: {{name}}"))
if tool == "kubectl":
    if words[:1] != ["--"]:
        sys.exit("error: exec [POD] [COMMAND] is not supported anymore; use -- [COMMAND]")
    words.pop(0)
# Of the container: its own files and variables, none of the caller's.
variables = {{"PATH": "/usr/bin:/bin", "AUDIT_ETC": str(inside / "etc"), "AUDIT_NAME": "inside",
             "AUDIT_PYTHON": "/nonexistent/python"}}
sys.exit(subprocess.run(words, stdin=stdin, env=variables, cwd=inside).returncode)
"""


@pytest.fixture(params=["docker", "podman", "kubectl"])
def client(request, tmp_path, monkeypatch):
    """Return the name of a client that has one container, `keystone_api`."""
    etc = tmp_path / "inside" / "keystone_api" / "etc" / "keystone"
    etc.mkdir(parents=True)
    (etc / "keystone.conf").write_text(CONF + "[role]\ncaching = false\n")
    program = tmp_path / request.param
    program.write_text(CLIENT.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return request.param


def audited(*words):
    done = CliRunner().invoke(loadstone, ["audit", *words, "--json", "-"], standalone_mode=False)
    assert done.exception is None
    return done.return_value, json.loads(done.stdout)


def test_a_container_is_audited_and_one_that_is_not_there_is_unknown(client):
    words = (f"--{client}", "keystone_api", f"--{client}", "gone")
    code, tree = audited(*words, "--rule", "KS-02", "--rule", "HOST-00")
    rows = {(row["host"], row["rule"]): row for row in tree["results"]}
    found = rows["keystone_api", "KS-02"]
    assert (found["state"], found["found"]) == ("fail", {"conf.caching_off": ["role"]})
    assert rows["keystone_api", "HOST-00"]["state"] == "pass"
    assert rows["gone", "HOST-00"]["state"] == "unknown"
    assert "gone" in rows["gone", "HOST-00"]["message"]
    assert ("gone", "KS-02") not in rows
    assert code == 4
    assert "hidden" not in json.dumps(tree)


def test_a_client_that_is_not_installed_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    _, tree = audited("--podman", "keystone_api", "--rule", "HOST-00")
    [row] = tree["results"]
    assert (row["state"], "cannot run podman" in row["message"]) == ("unknown", True)
