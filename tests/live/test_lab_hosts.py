"""Keystones on the lab hosts of a fleet: 4 load hosts, 2 lab hosts and this machine."""

import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from network_hosts import HERE, network
from running_fleet import begun, fleet_of, loadstone

from loadstone.engine.fleet import daemons
from loadstone.store.store import Store
from loadstone.system import paths

pytestmark = [
    pytest.mark.live,
    pytest.mark.verify,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
YES = "--yes-load-this-target"
TASK = """
KeystoneBasic.authenticate_user_and_validate_token:
- runner: {type: constant, times: 12, concurrency: 4}
  context: {users: {tenants: 1, users_per_tenant: 2}}
  sla: {failure_rate: {max: 0}}
KeystoneBasic.create_and_list_users:
- runner: {type: constant, times: 8, concurrency: 4}
  sla: {failure_rate: {max: 0}}
"""
FOUR_CELLS = """\
title: Four cells
settings: {hash-rounds: 4}
factors: {workers: [1, 2], threads: [1, 2]}
measurement:
  kind: steps
  figure: rate
  users: 2
  steps: [{name: issue, scenario: issue, concurrency: 4, iterations: 40}]
compare: [{factor: workers, levels: [1, 2]}]
"""
TWO_CELLS = """\
title: Two cells
settings: {hash-rounds: 4}
factors: {workers: [1, 2]}
measurement:
  kind: steps
  figure: rate
  users: 2
  steps: [{name: issue, scenario: issue, concurrency: 4, iterations: 40}]
"""


@pytest.fixture(scope="module")
def fleet(
    lab_home: None,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SimpleNamespace]:
    """Start it; each lab host has a folder of its own, with the environments of all tests."""
    kept = paths.labs()
    home = tmp_path_factory.mktemp("fleet")
    with network(6) as hosts:
        labs = {host: home / f"{host.name}-home" for host in hosts[4:]}
        for folder in (home, *labs.values()):
            (folder / "lab").mkdir(parents=True)
            for name in ("environments", "templates"):
                (kept / name).mkdir(parents=True, exist_ok=True)
                (folder / "lab" / name).symlink_to(kept / name)
        with fleet_of(hosts[:4], home, labs) as running:
            yield SimpleNamespace(
                url=running.url,
                home=home,
                labs=[one.address for one in labs],
                folders=list(labs.values()),
                senders=[home / host.name for host in hosts[:4]],
                workers=[home / host.name for host in labs],  # what `fleet down` is told
            )
        loadstone(home, "fleet", "down")


@pytest.fixture(scope="module")
def there(fleet: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """A Keystone on the first lab host, started from here."""
    home, host = fleet.home, fleet.labs[0]
    on = (f"--on={host}", f"--fleet={fleet.url}")
    begun = loadstone(home, "lab", "up", "there", *on, "--workers=2", "--with=hash-rounds=4")
    try:
        assert begun.returncode == 0, begun.stderr
        yield SimpleNamespace(url=begun.stdout.strip(), host=host)
    finally:
        ended = loadstone(home, "lab", "down", "there", "--purge")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(loadstone(home, "lab", "list", "--json=-").stdout) == []


def test_a_keystone_on_a_lab_host_is_known_here(
    fleet: SimpleNamespace, there: SimpleNamespace
) -> None:
    home = fleet.home
    assert there.url.startswith(f"http://{there.host}:")
    [listed] = json.loads(loadstone(home, "lab", "list", "--json=-").stdout)
    assert (listed["name"], listed["state"], listed["host"]) == ("there", "running", there.host)
    assert f"OS_AUTH_URL={there.url}" in loadstone(home, "lab", "env", "there").stdout
    shown = json.loads(
        loadstone(home, "fleet", "status", f"--fleet={fleet.url}", "--json=-").stdout
    )
    assert shown["lab_hosts"] == fleet.labs
    local = loadstone(home, "prove", "--lab=there", "--set=workers=1")
    assert local.returncode == 2
    assert "lab there is on another host" in local.stderr


def test_a_task_loads_it_from_the_fleet_and_no_secret_is_seen(
    fleet: SimpleNamespace, there: SimpleNamespace
) -> None:
    home = fleet.home
    variables = loadstone(home, "lab", "env", "there").stdout
    assert there.url in variables
    password = variables.partition("OS_PASSWORD=")[2].splitlines()[0]
    key = (home / "fleet" / "key.pem").read_text().splitlines()[1]
    (home / "task.yaml").write_text(TASK)
    task = ("run", "task.yaml", "--lab=there", f"--fleet={fleet.url}")
    refused = loadstone(home, *task)
    assert refused.returncode == 2
    assert YES in refused.stderr
    with seen_processes() as lines:
        done = loadstone(home, *task, YES, "--json=task.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("distributed.cli.dask_worker" in line for line in lines)
    with Store.open(home / "results") as store:
        [run] = [store.get(one.run_id) for one in store.every() if one.kind == "task"]
    for measurement in run.measurements:
        [trial] = measurement.trials
        assert trial.health is not None
        assert len(trial.health.parts) == 4
        assert trial.resources is not None
        assert "keystone" in {one.role for one in trial.resources.observation.uses}
    for secret in (password, key):
        assert not [line for line in lines if secret in line]
        # Keys and passwords have files of their own, which only their owner can read.
        files = [one for one in home.rglob("*") if one.is_file() and not one.is_symlink()]
        holding = [one for one in files if secret.encode() in one.read_bytes()]
        assert all(one.stat().st_mode & 0o077 == 0 for one in holding), holding
        assert not [one for one in holding if one.suffix in {".log", ".json", ".jsonl", ".db"}]
        assert secret not in done.stdout + done.stderr


def test_a_search_is_watched_on_the_lab_host(
    fleet: SimpleNamespace, there: SimpleNamespace
) -> None:
    home = fleet.home
    search = ("capacity", "--lab=there", f"--fleet={fleet.url}", "--scenario=validate", YES)
    found = loadstone(home, *search, "--budget=20", "--users=2")
    assert "Traceback" not in found.stderr
    with Store.open(home / "results") as store:
        [run] = [store.get(one.run_id) for one in store.every() if one.kind == "capacity"]
    assert dict(run.environment.target)["lab host"] == there.host
    watched = [
        use.role
        for trial in run.measurements[0].trials
        if trial.resources is not None
        for use in trial.resources.observation.uses
    ]
    assert "keystone" in watched


@contextmanager
def seen_processes() -> Iterator[set[str]]:
    """Collect the command lines of all processes of this machine, several times a second."""
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            seen.update(
                " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])
            )

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


def test_two_lab_hosts_measure_a_study_beside_one_another(fleet: SimpleNamespace) -> None:
    home = fleet.home
    (home / "two.yaml").write_text(TWO_CELLS)
    done = loadstone(home, *study_run(fleet, "two"))
    assert "Traceback" not in done.stderr
    hosts = hosts_of_study(home, "two", "workers")
    assert sorted(map(sorted, hosts.values())) == [[one] for one in fleet.labs]
    assert remains(fleet.folders) == []


def test_cells_that_are_compared_are_measured_on_one_lab_host(fleet: SimpleNamespace) -> None:
    home = fleet.home
    (home / "four.yaml").write_text(FOUR_CELLS)
    done = loadstone(home, *study_run(fleet, "four"))
    assert "Traceback" not in done.stderr
    hosts = hosts_of_study(home, "four", "threads")
    assert sorted(map(sorted, hosts.values())) == [[one] for one in fleet.labs]
    assert len(json.loads((home / "four.json").read_text())["differences"]) >= 2
    assert remains(fleet.folders) == []


def study_run(fleet: SimpleNamespace, name: str) -> tuple[str, ...]:
    kept = (f"--store={fleet.home / name}", f"--json={name}.json")
    return ("study", "run", f"{name}.yaml", f"--fleet={fleet.url}", YES, *kept)


def hosts_of_study(home: Path, name: str, factor: str) -> dict[str, set[str]]:
    """Return the lab hosts that measured each level of a factor."""
    told = json.loads((home / f"{name}.json").read_text())
    assert told["missing"] == 0
    hosts: dict[str, set[str]] = defaultdict(set)
    with Store.open(home / name) as store:
        for row in told["measurements"]:
            target = store.get(row["run_ids"][0]).environment.target
            hosts[row["levels"][factor]].add(dict(target)["lab host"])
    return hosts


def remains(folders: Sequence[Path]) -> list[Path]:
    """Return the deployments of studies on lab hosts."""
    return [one for folder in folders for one in (folder / "lab/deployments").glob("study-*")]


def test_a_fault_is_measured_by_a_fleet(fleet: SimpleNamespace) -> None:
    home = fleet.home
    settings = ("--with=hash-rounds=4", "--with=cache=memcached", "--workers=2")
    begun = loadstone(home, "lab", "up", "broken", f"--address={HERE}", *settings)
    assert begun.returncode == 0, begun.stderr
    try:
        words = ("fault", "--lab=broken", "--do=freeze memcached service for 1 seconds")
        short = ("--rate=10", "--repeats=1", "--baseline=6s", "--observe=6s", "--users=2")
        done = loadstone(home, *words, *short, f"--fleet={fleet.url}", YES)
        assert "Traceback" not in done.stderr
        with Store.open(home / "results") as store:
            [run] = [store.get(one.run_id) for one in store.every() if one.kind == "fault"]
        assert dict(run.environment.machine)["fleet"] == fleet.url
        trials = [one for measurement in run.measurements for one in measurement.trials]
        assert [len(one.health.parts) >= 4 for one in trials if one.health] == [True]
    finally:
        loadstone(home, "lab", "down", "broken", "--purge")


def test_a_load_host_that_hangs_gives_the_turns_of_its_lab_host_to_the_other(
    fleet: SimpleNamespace,
) -> None:
    home = fleet.home
    (home / "hung.yaml").write_text(TWO_CELLS.replace("iterations: 40", "iterations: 250"))
    [worker] = daemons.running(fleet.senders[0])
    with begun(home, *study_run(fleet, "hung")) as study:
        assert study.stderr is not None
        said = []
        try:
            for line in study.stderr:
                said.append(line)
                if sum("creating 2 users" in one for one in said) == 2:  # both load soon
                    break
            time.sleep(8)
            os.kill(worker.pid, signal.SIGSTOP)
            said.extend(study.stderr)
        finally:
            os.kill(worker.pid, signal.SIGCONT)
    assert not any("Traceback" in line for line in said), said
    told = "".join(said)
    [gone] = [host for host in fleet.labs if f"lab host {host} or its load hosts" in told]
    measured = hosts_of_study(home, "hung", "workers").values()
    assert set().union(*measured) == set(fleet.labs) - {gone}, told
    assert remains(fleet.folders) == []


def test_a_lab_host_that_is_lost_gives_its_turns_to_the_other(fleet: SimpleNamespace) -> None:
    """The last test: the lab host does not come back."""
    home = fleet.home
    (home / "lost.yaml").write_text(FOUR_CELLS)
    kept, gone = fleet.labs
    [worker] = daemons.running(fleet.workers[1])
    with begun(home, *study_run(fleet, "lost")) as study:
        assert study.stderr is not None
        said = []
        for line in study.stderr:
            said.append(line)
            if f"{gone}: [" in line and worker.process():  # it has begun its first turn
                os.kill(worker.pid, signal.SIGKILL)
    assert not any("Traceback" in line for line in said), said
    assert any(f"lab host {gone} or its load hosts were lost" in line for line in said), said
    assert set().union(*hosts_of_study(home, "lost", "threads").values()) == {kept}
