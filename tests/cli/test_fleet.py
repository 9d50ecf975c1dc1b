"""`loadstone fleet` and `--fleet`, with hosts that have networks of their own."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from command_line import PASSWORD
from documents import workloads
from known_service import NAME, cloud_of, serving
from network_hosts import HERE, network
from reserved_port import reserve_port
from running_fleet import begun, fleet_of, loadstone, of_admin
from ssh_hosts import ssh_hosts, with_settings

from loadstone.engine.fleet import certificates
from loadstone.engine.parquet import read
from loadstone.store.store import Store

pytestmark = pytest.mark.timeout(900)

AtOnce = Callable[..., "subprocess.CompletedProcess[str]"]
IS_ROOT = os.geteuid() == 0
CONTEXT = """
Authenticate.keystone:
- runner: {type: constant, times: 60, concurrency: 6}
  context: {users: {tenants: 1, users_per_tenant: 2}}
  sla: {failure_rate: {max: 0}}
"""

WATCHED = """
Authenticate.keystone:
- runner: {type: constant_for_duration, duration: 5, concurrency: 2}
  context: {users: {tenants: 1, users_per_tenant: 2}}
"""
WATCHED_COMMANDS = {
    "run": ("run", "task.yaml"),
    "compare": ("compare", "--cloud=a", "--cloud=b", "--users=0", "--seconds=3", "--pairs=4"),
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    loadstone(tmp_path, "fleet", "down")


def test_an_address_that_is_not_this_machines_is_one_line(home: Path) -> None:
    address = "203.0.113.5"  # for documentation (RFC 5737)
    (home / "fleet.yaml").write_text(f"address: {address}\nhosts: [127.0.0.1]\n")
    ended = loadstone(home, "hit", "http://127.0.0.1:9/", "--for=1s", "--fleet=fleet.yaml")
    assert ended.returncode == 3
    assert f"fleet.yaml: address: {address} is none of this machine's" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    ended = loadstone(home, "fleet", "up", f"--host={address}")
    assert ended.returncode == 3
    assert f"--host {address} is none of this machine's" in ended.stderr


def test_a_fleet_is_started_shown_loaded_from_and_ended(home: Path) -> None:
    port = reserve_port()
    url = f"tls://127.0.0.1:{port}"
    begun = loadstone(home, "fleet", "up", "--workers=2", f"--port={port}")
    assert begun.returncode == 0, begun.stderr
    assert f"--fleet {url}" in begun.stdout
    again = loadstone(home, "fleet", "up", f"--port={port}")
    assert again.returncode == 3
    assert "loadstone fleet down" in again.stderr
    shown = loadstone(home, "fleet", "status", f"--fleet={url}", "--json=-")
    assert shown.returncode == 0, shown.stderr
    assert len(json.loads(shown.stdout)["hosts"]) == 2
    assert_strangers_get_nothing(home, port)
    key = (home / "fleet" / "key.pem").read_text()
    assert (home / "fleet" / "key.pem").stat().st_mode & 0o077 == 0
    with serving(f"--user={NAME}", f"--project={NAME}") as (served, _):
        (home / "task.yaml").write_text(CONTEXT)
        words = ("run", "task.yaml", f"--fleet={url}", "--json=out.json")
        done = loadstone(home, *words, **of_admin("127.0.0.1", served))
    assert done.returncode == 0, done.stderr
    found = json.loads((home / "out.json").read_text())
    assert len(workloads(found)[0]["trials"][0]["generator"]["parts"]) == 2
    assert not [one for one in command_lines() if key.strip().splitlines()[1] in one]
    assert PASSWORD not in logs(home)
    ended = loadstone(home, "fleet", "down")
    assert "ended 3 processes" in ended.stdout
    gone = loadstone(home, "fleet", "status", f"--fleet={url}")
    assert gone.returncode == 3
    assert f"no Dask scheduler answers at {url}" in gone.stderr


def test_a_fleet_that_does_not_come_up_leaves_no_process(home: Path) -> None:
    (home / "fleet").mkdir(mode=0o700)
    (home / "fleet" / "spill").touch()  # where the worker wants a folder
    failed = loadstone(home, "fleet", "up", f"--port={reserve_port()}")
    assert failed.returncode == 3
    assert "a worker ended at once" in failed.stderr
    assert "ended 0 processes" in loadstone(home, "fleet", "down").stdout


def test_a_fleet_listens_at_an_ipv6_address(home: Path) -> None:
    url = f"tls://[::1]:{(port := reserve_port())}"
    begun = loadstone(home, "fleet", "up", "--host=::1", "--workers=1", f"--port={port}")
    assert begun.returncode == 0, begun.stderr
    assert f"--fleet {url}" in begun.stdout
    shown = loadstone(home, "fleet", "status", f"--fleet={url}", "--json=-")
    assert len(json.loads(shown.stdout)["hosts"]) == 1


def assert_strangers_get_nothing(home: Path, port: int) -> None:
    """A client has the fleet's certificate and speaks TLS, or is no client of it."""
    certificates.make(home / "others")
    words = ("fleet", "status", f"--fleet=tls://127.0.0.1:{port}")
    told = loadstone(home, *words, f"--fleet-certificates={home / 'others'}")
    assert told.returncode == 3
    assert told.stderr.count("\n") == 1
    plain = loadstone(home, "fleet", "status", f"--fleet=tcp://127.0.0.1:{port}")
    assert plain.returncode == 3


@pytest.mark.verify
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_host_that_is_only_watched_sends_nothing_and_its_readings_are_kept(
    home: Path, command: str
) -> None:
    port = reserve_port()
    url = f"tls://127.0.0.1:{port}"
    assert loadstone(home, "fleet", "up", f"--port={port}").returncode == 0
    watching = home / "watching"
    shutil.copytree(home / "fleet", watching, ignore=shutil.ignore_patterns("*.json", "*.log"))
    join = ("fleet", "up", f"--join={url}", f"--fleet-certificates={watching}", "--role=watch")
    try:
        assert loadstone(home, *join).returncode == 0
        told = loadstone(home, "fleet", "status", f"--fleet={url}", "--json=-")
        status = json.loads(told.stdout)
        assert (len(status["hosts"]), status["watch_hosts"]) == (1, ["127.0.0.1"])
        # Slower than the most that a closed loop of a comparison may send.
        options = (f"--user={NAME}", f"--project={NAME}", "--capacity=500")
        with serving(*options) as (served, _):
            (home / "task.yaml").write_text(WATCHED)
            cloud = cloud_of(f"http://127.0.0.1:{served}/v3")
            (home / "clouds.yaml").write_text(json.dumps({"clouds": {"a": cloud, "b": cloud}}))
            words = WATCHED_COMMANDS[command]
            done = loadstone(home, *words, f"--fleet={url}", **of_admin("127.0.0.1", served))
        assert "Traceback" not in done.stderr
    finally:
        loadstone(home, "fleet", "down", f"--fleet-certificates={watching}")
    with Store.open(home / "results") as store:
        runs = [store.get(one.run_id) for one in store.every()]
    assert [run.status for run in runs] == ["finished"] * (2 if command == "compare" else 1)
    for trial in (trial for run in runs for trial in run.measurements[0].trials):
        assert trial.health is not None
        assert len(trial.health.parts) == 1
        assert trial.resources is not None
        uses = {use.name for use in trial.resources.observation.uses}
        assert "the machine's CPU of 127.0.0.1" in uses


@pytest.mark.parametrize(
    ("fleet", "why"),
    [
        ("local:0", "choose 1 to 64 processes"),
        ("local:many", "write local:4, or tls://HOST:8786"),
        ("http://127.0.0.1:1", "write local:4, or tls://HOST:8786"),
        ("tls://127.0.0.1:8786", "ca.pem is missing; `loadstone fleet up` makes it"),
        ("tcp://198.51.100.7:8786", "use tls://, or say --fleet-without-tls"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_in_one_line(
    at_once: AtOnce, fleet: str, why: str
) -> None:
    told = at_once("capacity", f"--fleet={fleet}")
    assert told.returncode == 2
    assert why in told.stderr
    assert "Traceback" not in told.stderr


def test_python_functions_run_on_this_machine_only(home: Path) -> None:
    (home / "task.yaml").write_text("Dummy.dummy:\n- runner: {type: serial, times: 1}\n")
    with serving(f"--user={NAME}", f"--project={NAME}") as (served, _):
        words = ("run", "task.yaml", "--fleet=local:2")
        told = loadstone(home, *words, **of_admin("127.0.0.1", served))
    assert told.returncode == 2
    assert "without --fleet" in told.stderr


@pytest.mark.verify
def test_the_live_page_shows_each_host_while_the_load_goes_on(home: Path) -> None:
    with serving(f"--user={NAME}", f"--project={NAME}") as (served, _):
        url = f"http://127.0.0.1:{served}/v3"
        words = ("hit", url, "--rate=200", "--for=8s", "--fleet=local:2", "--live")
        with begun(home, *words) as client:
            assert client.stderr is not None
            page = re.fullmatch(r"live page: (\S+)\n", client.stderr.readline())
            assert page is not None
            with urllib.request.urlopen(f"{page[1]}events", timeout=60) as events:
                text = events.read().decode()
            _, errors = client.communicate(timeout=60)
            assert client.returncode == 0, errors
    shown = [
        json.loads(line.removeprefix("data: "))["html"]
        for line in text.splitlines()
        if line.startswith("data: ") and "Hosts of the fleet" in line
    ]
    assert len(shown) > 3
    table = shown[-1].partition("Hosts of the fleet")[2].partition("</table>")[0]
    rows = [re.findall(r"<t[dh][^>]*>([^<]*)", row) for row in table.split("<tr")]
    rates = [float(row[1]) for row in rows if len(row) == 7 and row[0] != "host"]
    assert len(rates) == 2
    assert sum(rates) == pytest.approx(200, rel=0.2)


@pytest.mark.verify
@pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root")
def test_hosts_with_networks_of_their_own_load_together(home: Path) -> None:
    options = (f"--host={HERE}", f"--user={NAME}", f"--project={NAME}")
    with (
        network(3) as hosts,
        serving(*options) as (served, _),
        fleet_of(hosts, home) as fleet,
    ):
        (home / "task.yaml").write_text(CONTEXT)
        words = ("run", "task.yaml", f"--fleet={fleet.url}", "--json=out.json")
        refused = loadstone(home, *words, **of_admin(HERE, served))
        assert refused.returncode == 2
        assert "--yes-load-this-target" in refused.stderr
        words = (*words, "--yes-load-this-target")
        done = loadstone(home, *words, **of_admin(HERE, served))
        assert done.returncode == 0, done.stderr
        loopback = loadstone(home, *words, **of_admin("127.0.0.1", served))
        assert loopback.returncode != 0


@pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root")
def test_a_host_that_is_cut_off_under_load_is_named(home: Path) -> None:
    options = (f"--host={HERE}", f"--user={NAME}", f"--project={NAME}")
    with (
        network(2) as hosts,
        serving(*options) as (served, _),
        fleet_of(hosts, home) as fleet,
    ):
        (home / "task.yaml").write_text(
            CONTEXT.replace(
                "type: constant, times: 60", "type: constant_for_duration, duration: 20"
            )
        )
        words = ("run", "task.yaml", f"--fleet={fleet.url}", "--yes-load-this-target")
        with begun(home, *words, **of_admin(HERE, served)) as run:
            assert run.stderr is not None
            lines = iter(run.stderr.readline, "")
            shown = "".join(itertools.takewhile(lambda line: "| waiting" not in line, lines))
            hosts[1].cut_off()
            stdout, stderr = run.communicate()
    assert run.returncode == 3, stdout + shown + stderr
    assert f"({hosts[1].address}:" in stderr
    assert "was lost under load: no answer within 2 s" in stderr
    assert "removed all that the run made" in stderr


def ssh_file(home: Path, address: str, config: Path, hosts: Sequence[object]) -> str:
    tree = {"address": address, "ssh_config": str(config), "hosts": list(hosts)}
    (home / "fleet.yaml").write_text(json.dumps(tree))
    return "fleet.yaml"


def workers_left() -> list[str]:
    return [line for line in command_lines() if "loadstone.engine.fleet.host_process" in line]


@pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root")
def test_hosts_by_ssh_are_started_for_a_run_and_ended(home: Path) -> None:
    options = (f"--host={HERE}", f"--user={NAME}", f"--project={NAME}")
    names = ("first", "second")
    with (
        network(2) as hosts,
        serving(*options) as (served, _),
        ssh_hosts(home, dict.fromkeys(names, ""), dict(zip(names, hosts, strict=True))) as reached,
    ):
        (home / "task.yaml").write_text(CONTEXT)
        each = [{"name": name, "workers": 2, "python": sys.executable} for name in names]
        file = ssh_file(home, HERE, reached.config, each)
        words = ("run", "task.yaml", f"--fleet={file}", "--yes-load-this-target")
        done = loadstone(home, *words, **of_admin(HERE, served))
        assert done.returncode == 0, done.stderr
    [samples] = [read(path) for path in home.rglob("samples/*.parquet")]
    assert len(samples) == 60
    assert set(samples.generator.tolist()) == {0, 1, 2, 3}
    assert not workers_left()
    assert not list(Path("/dev/shm").glob("loadstone-fleet-*"))


def test_hosts_by_ssh_end_when_the_client_is_killed(home: Path) -> None:
    with (
        serving(f"--user={NAME}", f"--project={NAME}") as (served, _),
        ssh_hosts(home, {"one": ""}) as reached,
    ):
        long = CONTEXT.replace("constant, times: 60", "constant_for_duration, duration: 60")
        (home / "task.yaml").write_text(long)
        file = ssh_file(
            home, "127.0.0.1", reached.config, [{"name": "one", "python": sys.executable}]
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        with subprocess.Popen(
            [sys.executable, "-m", "loadstone", "run", "task.yaml", f"--fleet={file}"],
            env=kept | {"LOADSTONE_HOME": str(home)} | of_admin("127.0.0.1", served),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home,
        ) as client:
            until(lambda: bool(workers_left()))
            client.kill()
        until(lambda: not workers_left())
    assert not list(Path("/dev/shm").glob("loadstone-fleet-*"))


def test_a_host_by_ssh_that_cannot_load_is_named_in_one_line(home: Path) -> None:
    reasons = {
        "one: /bin/false has no Loadstone": {"name": "one", "python": "/bin/false"},
        "nowhere.invalid: ": {"name": "nowhere.invalid"},
    }
    with ssh_hosts(home, {"one": ""}) as reached:
        for why, host in reasons.items():
            file = ssh_file(home, "127.0.0.1", reached.config, [host])
            told = loadstone(home, "fleet", "status", f"--fleet={file}")
            assert told.returncode == 3
            assert why in told.stderr
            assert told.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hosts: [a]", "address must be this machine's"),
        ("address: 10.0.0.1", "hosts must be a list"),
        ("{address: 10.0.0.1, hosts: [-oProxyCommand=id]}", "host 1: '-oProxyCommand=id' is not"),
        (
            "address: 10.0.0.1\nhosts:\n  - name: a\n    workers: 0",
            ":4: host 1: workers must be 1 to 64, not 0",
        ),
        (
            "{address: 10.0.0.1, hosts: [{name: a, role: db}]}",
            "role must be one of load, lab, watch, not 'db'",
        ),
        ("{address: 10.0.0.1, hosts: [a], wheels: none}", "none does not exist"),
        ("{address: 10.0.0.1, hosts: [a], user: b}", "no field 'user'"),
        (": :", "not YAML"),
    ],
)
def test_a_mistake_in_a_file_of_hosts_is_told(
    at_once: AtOnce, tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "fleet.yaml").write_text(text)
    told = at_once("fleet", "status", "--fleet=fleet.yaml")
    assert told.returncode == 2
    assert why in told.stderr


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)


def command_lines() -> list[str]:
    return [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]


def logs(home: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in home.rglob("*.log"))


FAKE_UV = """#!/bin/sh
# Keeps what it is asked for. An environment has the Python of the tests.
echo "$@" >> "{log}"
case "$1" in
venv) mkdir -p "$3/bin"; ln -s "{python}" "$3/bin/python" ;;
pip) ls >> "{log}" ;;
esac
"""


@pytest.mark.parametrize("has_wheels", [False, True])
def test_a_host_by_ssh_gets_this_loadstone_and_no_name_is_resolved(
    home: Path, tmp_path: Path, has_wheels: bool
) -> None:
    log, programs, there = tmp_path / "log", tmp_path / "programs", tmp_path / "there"
    programs.mkdir()
    there.mkdir()
    uv = programs / "uv"
    uv.write_text(FAKE_UV.format(log=log, python=sys.executable))
    uv.chmod(0o755)
    settings = {"HOME": str(there), "PATH": f"{programs}:{os.environ['PATH']}"}
    more = {"VIRTUAL_ENV": sys.prefix, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with ssh_hosts(home, {"one": with_settings(settings | more)}) as reached:
        ssh_file(home, "127.0.0.1", reached.config, ["one"])
        if has_wheels:
            (home / "wheels").mkdir()
            (home / "wheels" / "numpy.whl").write_text("")
            tree = json.loads((home / "fleet.yaml").read_text()) | {"wheels": "wheels"}
            (home / "fleet.yaml").write_text(json.dumps(tree))
        shown = loadstone(home, "fleet", "status", "--fleet=fleet.yaml")
    assert shown.returncode == 0, shown.stderr
    lines = log.read_text().splitlines()
    installs = [line for line in lines if line.startswith("pip install")]
    assert len(installs) == 2
    source = " --no-index --find-links wheels" if has_wheels else ""
    assert installs[0].endswith(f"/bin/python --require-hashes{source} -r requirements.txt")
    assert re.search(
        r"/bin/python --no-deps --no-index ./loadstone-[\w.]+-cp311-abi3-\w+\.whl$", installs[1]
    )
    assert ("wheels" in lines) is has_wheels
