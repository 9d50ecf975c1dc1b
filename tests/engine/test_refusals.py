import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from loopback import GET, OK, Serve, answering

from loadstone.engine.local import InvalidPlan, prepare_in_rust, run
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad
from loadstone.plan.model import Limits, Origin, Placement, Plan, Tls
from loadstone.plan.script import Captured, Column, HeaderCapture, JsonCapture, Step, Text, text

SECRET = "hunter2"
ORIGIN = Origin("http", "127.0.0.1", 1)
ONCE = ClosedLoad(1, iterations=1)


def refusal(plan: Plan) -> str:
    with pytest.raises(InvalidInput) as raised:
        run(plan)
    message = str(raised.value)
    assert SECRET not in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (OpenLoad(0, 1), "load.rate_rps must be positive and finite, not 0"),
        (OpenLoad(-1, 1), "load.rate_rps must be positive"),
        (OpenLoad(1, 0), "load.duration_s must be positive"),
        (OpenLoad(1e9, 3600), "load.rate_rps 1000000000/s for 3600 s is more than"),
        (OpenLoad(1, 1e12), "load.duration_s must be at most a year"),
        (OpenLoad(float("nan"), 1), "load.rate_rps expected value"),
        (ClosedLoad(0, 1.0), "load.workers must be at least 1"),
        (ClosedLoad(1), "load needs duration_s or iterations"),
        (ClosedLoad(300, 1.0), "load.workers must not exceed limits.max_connections (256), is 300"),
        (BandLoad(5, 5, 10, 1, 1), "load.low must be below load.high (5), is 5"),
        (BandLoad(1, 5, 10, -1, 1), "load.ebb_rps must be zero or more"),
    ],
)
def test_a_load_that_cannot_be_is_refused_by_name(load: Load, words: str) -> None:
    assert words in refusal(Plan(ORIGIN, (GET,), load))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (replace(GET, method="GE T"), "steps[0].method must be an HTTP method"),
        (replace(GET, path=text("here")), "steps[0].path must start with a text that starts"),
        (replace(GET, path=text("/a b")), "steps[0].path holds a byte that HTTP does not allow"),
        (replace(GET, path=(Text("/"), Column("none"))), 'needs the column "none"'),
        (replace(GET, headers=(("X", (Captured("t"),)),)), 'needs the capture "t", which no'),
        (replace(GET, headers=(("X", (Column("users"),)),)), "row 1 holds a byte that HTTP"),
        (replace(GET, headers=(("X", (Column("empty"),)),)), 'the column "empty", which is empty'),
        (replace(GET, headers=(("X Y", text("")),)), "steps[0].headers.X Y is no header name"),
        (replace(GET, headers=(("X", text("a\r\nb")),)), "steps[0].headers.X holds a byte"),
        (replace(GET, headers=(("Content-Length", text("1")),)), "is written by the engine"),
        (replace(GET, expect_status=()), "steps[0].expect_status must name at least one"),
        (replace(GET, captures=(HeaderCapture("t", ""),)), "steps[0].captures.t names no header"),
        (
            replace(GET, captures=(JsonCapture("t", "id"),)),
            "captures.t is no JSON pointer",
        ),
    ],
)
def test_a_step_that_would_be_no_http_is_refused_by_name(step: Step, words: str) -> None:
    columns = {"users": ("ann", f"{SECRET}\r\nX-Admin: yes"), "empty": ()}
    assert words in refusal(Plan(ORIGIN, (step,), ONCE, columns))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(ORIGIN, (), ONCE), "steps must be 1 to 255"),
        (Plan(Origin("http", "", 1), (GET,), ONCE), "origin.host must not be empty"),
        (Plan(Origin("http", "a", 70_000), (GET,), ONCE), "origin.port"),
        (Plan(ORIGIN, (GET,), ONCE, limits=Limits(max_connections=0)), "limits.max_connections"),
        (Plan(ORIGIN, (GET,), ONCE, limits=Limits(drain_s=-1)), "limits.drain_s must be zero"),
        (
            Plan(ORIGIN, (GET,), ONCE, limits=Limits(stopped_drain_s=-1)),
            "limits.stopped_drain_s must be zero",
        ),
        (
            Plan(ORIGIN, (GET,), ONCE, limits=Limits(drain_s=1e10)),
            "limits.drain_s must be at most a year",
        ),
        (
            Plan(ORIGIN, (GET,), ONCE, limits=Limits(connect_timeout_s=1e10)),
            "limits.connect_timeout_s must be at most a year",
        ),
        (
            Plan(ORIGIN, (GET,), ONCE, limits=Limits(request_timeout_s=1e10)),
            "limits.request_timeout_s must be at most a year",
        ),
        (Plan(ORIGIN, (GET,), ONCE, placement=Placement(0)), "placement.threads must be at least"),
        (Plan(ORIGIN, (GET,), ONCE, placement=Placement(1, (9999,))), "core 9999 cannot be used"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_by_name(plan: Plan, words: str) -> None:
    assert words in refusal(plan)


def test_what_the_engine_does_not_know_is_refused_by_name() -> None:
    plan = json.loads(Plan(ORIGIN, (GET,), ONCE).to_json())
    for change, words in [
        ({"lod": 1}, "unknown field `lod`"),
        ({"load": {**plan["load"], "rate": 1}}, "unknown field `rate`"),
        ({"limits": {}}, "limits missing field `max_connections`"),
        ({"columns": {"password": SECRET}}, "columns.password must be lists of texts"),
    ]:
        with pytest.raises(InvalidPlan) as raised:
            prepare_in_rust(json.dumps(plan | change), None, live=False, connect=False)
        assert words in str(raised.value)
        assert SECRET not in str(raised.value)


def test_a_host_that_does_not_exist_is_an_unusable_environment() -> None:
    # Not even asked of a name server, which might take its time.
    plan = Plan(Origin("http", "no such host", 80), (GET,), ONCE)
    with pytest.raises(EnvironmentUnusable, match=r"^cannot find host no such host: "):
        run(plan)


def test_files_that_are_no_certificates_are_refused_by_name(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    missing = str(tmp_path / "missing.pem")
    for tls, path in [
        (Tls(ca_file=missing), missing),
        (Tls(ca_file=str(empty)), str(empty)),
        (Tls(cert_file=missing, verify=False), missing),
    ]:
        message = refusal(Plan(Origin("https", "127.0.0.1", 1, tls), (GET,), ONCE))
        assert message.startswith(f"{path}: ")


def test_too_few_open_files_are_told_before_the_run_with_the_mend() -> None:
    program = (
        "import resource\n"
        "from loadstone.engine.local import EnvironmentUnusable, run\n"
        "from loadstone.plan.load import ClosedLoad\n"
        "from loadstone.plan.model import Limits, Origin, Plan\n"
        "from loadstone.plan.script import Step, text\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))\n"
        "plan = Plan(Origin('http', '127.0.0.1', 1), (Step('a', 'GET', text('/')),),\n"
        "            ClosedLoad(1, iterations=1), limits=Limits(max_connections=200))\n"
        "try:\n"
        "    run(plan)\n"
        "except EnvironmentUnusable as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("264 open files are needed, 150 are allowed: ulimit -Hn 264")


def test_open_files_of_loads_in_turns_are_counted_together() -> None:
    program = (
        "import resource\n"
        "from pathlib import Path\n"
        "from loadstone.engine.local import EnvironmentUnusable, run_pair\n"
        "from loadstone.plan.load import ClosedLoad\n"
        "from loadstone.plan.model import Limits, Origin, Plan\n"
        "from loadstone.plan.script import Step, text\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))\n"
        "plan = Plan(Origin('http', '127.0.0.1', 1), (Step('a', 'GET', text('/')),),\n"
        "            ClosedLoad(1, iterations=1, turn=1), limits=Limits(max_connections=60))\n"
        "try:\n"
        "    run_pair((plan, plan), (Path('a'), Path('b')), (bool, bool))\n"
        "except EnvironmentUnusable as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("184 open files are needed, 150 are allowed")


def test_open_files_that_the_process_has_leave_room_for_connections(serve: Serve) -> None:
    program = (
        "import resource\n"
        "from loadstone.engine.local import run\n"
        "from loadstone.plan.load import ClosedLoad\n"
        "from loadstone.plan.model import Limits, Origin, Plan\n"
        "from loadstone.plan.script import Step, text\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (160, 2000))\n"
        "held = [open('/dev/null') for _ in range(120)]\n"
        f"plan = Plan(Origin('http', '127.0.0.1', {serve(answering(OK)).port}),\n"
        "            (Step('a', 'GET', text('/')),), ClosedLoad(60, iterations=60),\n"
        "            limits=Limits(max_connections=60))\n"
        "print(set(run(plan).samples.outcome.tolist()))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "{0}\n"


FEW_THREADS = """
import os, resource
from loopback import GET
from loadstone.engine.local import run
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Origin, Placement, Plan

origin = Origin("http", "127.0.0.1", 1)
# What is imported on the way is imported now: the other user may read less.
run(Plan(origin, (GET,), OpenLoad(1, 1, iterations=1)))
if os.geteuid() == 0:  # whose threads have no limit
    os.setgid(65534)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
limits, placement = Limits(max_connections=4000), Placement(threads=4000)
try:
    run(Plan(origin, (GET,), OpenLoad(1, 1), limits=limits, placement=placement))
except EnvironmentUnusable as error:
    print(error)
"""


def test_a_thread_that_cannot_be_started_ends_the_run() -> None:
    # Not by too little memory for the threads: the C library may end the process first.
    support = Path(__file__).parents[1] / "support"
    ended = subprocess.run(
        [sys.executable, "-c", FEW_THREADS],
        env={"PYTHONPATH": str(support)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "of 4000 cannot be started: Resource temporarily unavailable" in ended.stdout
