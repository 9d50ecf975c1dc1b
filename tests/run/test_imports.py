"""What a run does not import: libraries are most of its memory, and of its start."""

import json
import subprocess
import sys

from command_line import environment
from known_service import NAME, serving

from loadstone.store.store import Store

# What makes a database, and what only some tasks or reports need.
NEEDLESS = {
    "alembic",
    "numpy.ma",
    "openstack.cloud",
    "openstack.compute",
    "openstack.connection",
    "multiprocessing",
    "loadstone.rally.export",
}
RUN = """
import atexit, json, sys
from loadstone.cli import main

atexit.register(lambda: print(json.dumps([*sys.modules])))
main()
"""


def test_a_run_imports_nothing_that_it_has_no_use_for(tmp_path):
    task = tmp_path / "task.json"
    task.write_text(
        json.dumps({"Authenticate.keystone": [{"runner": {"type": "serial", "times": 2}}]})
    )
    Store.open(tmp_path).close()
    with serving(f"--user={NAME}", f"--project={NAME}") as (port, _):
        ended = subprocess.run(
            [sys.executable, "-c", RUN, "run", str(task), "--store", str(tmp_path)],
            env=environment(f"http://127.0.0.1:{port}/v3", tmp_path),
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert not NEEDLESS & set(json.loads(ended.stdout.splitlines()[-1]))
