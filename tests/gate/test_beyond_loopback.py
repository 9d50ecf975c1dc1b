"""Nothing beyond loopback is loaded without the user's word: counted at another address."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from two_addresses import OTHER

FLAG = "--yes-load-this-target"
SUPPORT = Path(__file__).parents[1] / "support"


def run(case: str, home: Path, *words: str) -> dict[str, Any]:
    # A network namespace of its own, in which the other address is as harmless as loopback.
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "-r", "--net"]
    told = subprocess.run(
        [*alone, sys.executable, SUPPORT / "two_addresses.py", case, home, *words],
        env=os.environ | {"PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("http", f"task.yaml:5: HttpRequests.check_request: {OTHER} is not this machine"),
        pytest.param(
            "random http",
            f"task.yaml:5: HttpRequests.check_random_request: {OTHER} is not this",
            marks=pytest.mark.verify,
        ),
        ("catalog", f"NovaServers.boot_server: the catalog's compute endpoint http://{OTHER}:"),
        pytest.param(
            *("quotas", f"the catalog's compute endpoint http://{OTHER}:"),
            marks=pytest.mark.verify,
        ),
        ("function", f"plugin.py:get tried to connect to {OTHER}:"),
        ("function, by proxy", f"plugin.py:get tried to connect to {OTHER}:"),
        pytest.param(
            *("function, redirected", f"plugin.py:get tried to connect to {OTHER}:"),
            marks=pytest.mark.verify,
        ),
    ],
)
def test_what_is_not_on_this_machine_is_loaded_with_the_users_word_only(
    tmp_path: Path, case: str, words: str
) -> None:
    without = run(case, tmp_path, "run", "task.yaml")
    assert (without["connections"], without["requests"]) == (0, []), without["stderr"]
    assert without["code"] == 2, without["stderr"]
    (line,) = [line for line in without["stderr"].splitlines() if FLAG in line]
    assert words in line

    permitted = run(case, tmp_path, "run", "task.yaml", FLAG)
    assert permitted["code"] == 0, permitted["stderr"]
    assert len(permitted["requests"]) >= (1 if case == "quotas" else 6)


def test_a_redirect_is_not_followed_even_with_it(tmp_path: Path) -> None:
    found = run("redirect, not followed", tmp_path, "run", "task.yaml", FLAG)
    assert found["code"] == 0, found["stderr"]
    assert found["connections"] == 0
