"""No packet leaves loopback without the user's word, counted by the kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
ALONE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "-r", "--net"]

pytestmark = pytest.mark.timeout(1000)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    probe = subprocess.run(
        [*ALONE, "ip", "link", "add", "probe", "type", "veth"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0 and not os.environ.get("CI"):
        pytest.skip(f"no network namespace with a link can be made here: {probe.stderr.strip()}")
    told = subprocess.run(
        [*ALONE, sys.executable, SUPPORT / "packet_counter.py", tmp_path_factory.mktemp("home")],
        env=os.environ | {"PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    found: dict[str, list[dict[str, Any]]] = json.loads(told.stdout)
    return found


def test_commands_on_this_machine_send_nothing_beyond_loopback(
    sent: dict[str, list[dict[str, Any]]],
) -> None:
    for one in sent["inside"]:
        assert one["packets"] == 0, one
        if one["words"][0] != "doctor":  # which says by it what is installed
            # These end with 4 where this machine is too busy to measure.
            measures = one["words"][0] in ("capacity", "hit")
            assert one["exit_code"] in ((0, 4) if measures else (0,)), one


def test_a_target_elsewhere_is_refused_before_any_packet(
    sent: dict[str, list[dict[str, Any]]],
) -> None:
    for one in sent["outside"]:
        assert (one["packets"], one["exit_code"]) == (0, 2), one
        assert "--yes-load-this-target" in one["stderr"]


def test_the_counter_sees_what_the_flag_permits(sent: dict[str, list[dict[str, Any]]]) -> None:
    for one in sent["permitted"]:  # over IPv4, and over IPv6
        assert one["packets"] > 0
