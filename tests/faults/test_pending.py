"""Faults that are still in force are undone, or named before anything is measured or deleted."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from dead_owner import dead_owner
from realistic import keystone

from loadstone.cli import main
from loadstone.faults.commands import CommandInjector, read_commands
from loadstone.faults.host import HostCommand
from loadstone.faults.journal import FaultTarget, Owner, Undo, UndoJournal
from loadstone.faults.sentence import read
from loadstone.faults.undo import undo_pending
from loadstone.keystone.journal import JOURNAL
from loadstone.lab import processes, state
from loadstone.lab.state import DeploymentPhase, DeploymentState
from loadstone.store.store import Store

RUN = "20260101-0000-abcdef"
RESULT, _ = keystone()
TARGET = FaultTarget(None, ("127.0.0.1:35357",))  # of RESULT
URL = "http://127.0.0.1:35357/v3"
PASSWORD = "pw-that-must-not-be-seen"


@dataclass
class Ended:
    returncode: int
    stdout: str
    stderr: str


CommandLine = Callable[..., Ended]


@pytest.fixture
def loadstone(tmp_path, monkeypatch, capfd) -> CommandLine:
    """The command line in this process, with OS_* variables and a run of the same target."""
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OS_AUTH_URL", "http://localhost:35357/v3")
    monkeypatch.setenv("OS_USER_DOMAIN_ID", "default")
    monkeypatch.setenv("OS_PROJECT_DOMAIN_ID", "default")
    monkeypatch.setenv("OS_PROJECT_NAME", "p")
    monkeypatch.setenv("OS_USERNAME", "u")
    monkeypatch.setenv("OS_PASSWORD", PASSWORD)
    # openstacksdk looks for clouds.yaml where the process was when it was imported.
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    with Store.open(tmp_path / "results") as store:
        store.begin(RESULT)

    def run(*words: str) -> Ended:
        monkeypatch.setattr("sys.argv", ["loadstone", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(ended.value.code, *capfd.readouterr())

    return run


def note(
    command: str, target: FaultTarget = TARGET, owner: Owner | None = None, host: str = "here"
) -> UndoJournal:
    journal = UndoJournal.of(target)
    wanted = HostCommand.here_and_now(host, command)
    journal.note(Undo.COMMAND, wanted.as_json(), owner or dead_owner(RUN))
    return journal


def lab(home: Path, name: str = "two") -> Path:
    """The folder of a stopped lab."""
    folder = home / "lab" / "deployments" / name
    state.write(
        folder, DeploymentState(name, "r", DeploymentPhase.STOPPED, "boot", (("workers", "1"),))
    )
    return folder


def task(home: Path) -> str:
    file = home / "task.json"
    file.write_text(
        json.dumps(
            {"Authenticate.keystone": [{"runner": {"type": "serial", "times": 1}}]},
        )
    )
    return str(file)


def clouds(home: Path) -> None:
    auth = {"auth_url": URL, "username": "u", "password": "p"}
    auth |= {"project_name": "p", "user_domain_id": "d", "project_domain_id": "d"}
    (home / "clouds.yaml").write_text(
        json.dumps({"clouds": {name: {"auth": auth} for name in "ab"}})
    )


COMMANDS = {
    "capacity": ("capacity", "--budget", "20s"),
    "capacity of a cloud": ("capacity", "--cloud", "a", "--budget", "20s"),
    "prediction": ("capacity", "--predict"),
    "run": ("run", "task.json"),
    "fault": ("fault", "--do", "overload 2x for 1 seconds"),
    "compare": ("compare", "--cloud", "a", "--cloud", "b"),
    "delete": ("results", "delete", "latest"),
}
LAB_COMMANDS = {
    "capacity": ("capacity", "--lab", "two"),
    "run": ("run", "--lab", "two", "task.json"),
    "fault": ("fault", "--lab", "two", "--do", "rotate fernet keys"),
    "compare": ("compare", "--lab", "two", "--lab", "three"),
    "prove": ("prove", "--lab", "two", "--set", "workers=2"),
    "audit prove": ("audit", "prove", "KS-01", "--lab", "two"),
    "purge": ("lab", "down", "two", "--purge"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_names_the_pending_fault_of_its_target_and_refuses(
    loadstone, tmp_path, words
) -> None:
    note("touch undone")
    task(tmp_path)
    clouds(tmp_path)
    ended = loadstone(*words)
    assert ended.returncode == 3
    assert f"a fault of run {RUN}" in ended.stderr
    assert "is still in force; to undo: touch undone (here)" in ended.stderr
    assert "loadstone fault --undo" in ended.stderr
    assert "--anyway" in ended.stderr
    with Store.open(tmp_path / "results") as store:
        assert store.get("latest").run_id == RESULT.run_id


def test_clean_names_the_pending_fault_and_refuses(loadstone, tmp_path) -> None:
    note("touch undone")
    target = {"event": "target", "run_id": RESULT.run_id, "chosen": "OS_*", "identity_url": URL}
    left = {"event": "create", "kind": "domain", "name": f"loadstone-{RESULT.run_id}"}
    with Store.open(tmp_path / "results") as store:
        journal = store.folder(RESULT.run_id) / JOURNAL
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in (target, left)))
    ended = loadstone("results", "clean", "latest")
    assert ended.returncode == 3
    assert f"a fault of run {RUN}" in ended.stderr
    assert "loadstone fault --undo" in ended.stderr


@pytest.mark.parametrize("words", LAB_COMMANDS.values(), ids=LAB_COMMANDS)
def test_a_command_names_the_pending_fault_of_its_lab_and_refuses(
    loadstone, tmp_path, words
) -> None:
    folder = lab(tmp_path)
    lab(tmp_path, "three")
    task(tmp_path)
    UndoJournal.of(FaultTarget(folder)).note(Undo.READY, "node-1", dead_owner(RUN))
    ended = loadstone(*words)
    assert ended.returncode == 3
    assert "lab two: a fault of run" in ended.stderr
    assert "to undo: ready node-1; first: loadstone fault --undo --lab two" in ended.stderr
    assert folder.exists()


def test_the_demo_names_the_pending_fault_of_its_lab_and_refuses(loadstone, tmp_path) -> None:
    folder = lab(tmp_path, "demo")
    UndoJournal.of(FaultTarget(folder)).note(Undo.READY, "node-1", dead_owner(RUN))
    ended = loadstone("demo")
    assert ended.returncode == 3
    assert "lab demo: a fault of run" in ended.stderr
    assert "first: loadstone fault --undo --lab demo" in ended.stderr


def test_of_another_target_nothing_is_said(loadstone) -> None:
    note("touch undone", FaultTarget(None, ("keystone.example:5000",)))
    assert "in force" not in loadstone("capacity", "--budget", "20s").stderr


def test_anyway_names_the_fault_and_goes_on(loadstone) -> None:
    note("touch undone")
    ended = loadstone("results", "delete", "latest", "--anyway")
    assert ended.returncode == 0
    assert "is still in force" in ended.stderr
    assert ended.stdout == f"deleted {RESULT.run_id}\n"
    ended = loadstone("capacity", "--budget", "20s", "--anyway")
    assert "is still in force" in ended.stderr
    assert "127.0.0.1:35357" in ended.stderr or "localhost:35357" in ended.stderr
    assert "or add --anyway" not in ended.stderr


def test_a_deleted_run_leaves_its_journal(loadstone, tmp_path) -> None:
    note("touch undone", owner=dead_owner(RESULT.run_id))
    assert loadstone("results", "delete", "latest", "--anyway").returncode == 0
    assert loadstone("fault", "--undo").returncode == 0
    assert (tmp_path / "undone").exists()


def test_a_run_whose_fault_is_pending_elsewhere_is_not_deleted(loadstone) -> None:
    elsewhere = FaultTarget(None, ("keystone.example:5000",))
    note("touch undone", elsewhere, dead_owner(RESULT.run_id))
    ended = loadstone("results", "delete", "latest")
    assert ended.returncode == 3
    assert "keystone.example:5000" in ended.stderr


def test_a_broken_host_is_known_by_its_name_also_at_another_address(loadstone, tmp_path) -> None:
    note("systemctl start apache2", FaultTarget(None, ("other:5000",)), host="root@controller-1")
    file = tmp_path / "faults.yaml"
    file.write_text("keystone: {hosts: [root@controller-1], kill: 'true'}")
    words = ("fault", "--faults", str(file), "--yes-break-this-target")
    ended = loadstone(*words, "--do", "kill keystone service")
    assert ended.returncode == 3
    assert "systemctl start apache2 (root@controller-1)" in ended.stderr


def test_a_fault_that_a_living_process_holds_is_said_with_its_holder(loadstone) -> None:
    parent = processes.identify(os.getppid())
    holder = Owner(parent.pid, parent.started_ticks, processes.boot_id(), RUN)
    note("touch undone", owner=holder)
    ended = loadstone("capacity", "--budget", "20s")
    assert ended.returncode == 3
    assert f"run {RUN} (pid {parent.pid}) holds and will undo" in ended.stderr
    ended = loadstone("fault", "--undo")
    assert ended.returncode == 3
    assert f"(pid {parent.pid}) holds" in ended.stderr
    assert not Path("undone").exists()


def test_a_process_is_not_refused_for_the_fault_that_it_holds_itself(loadstone) -> None:
    note("touch undone", owner=Owner.this(RUN))
    assert "in force" not in loadstone("capacity", "--budget", "20s").stderr


def test_undo_ends_with_0_when_nothing_is_left(loadstone, tmp_path) -> None:
    journal = note("touch first")
    note("touch second")
    ended = loadstone("fault", "--undo")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "127.0.0.1:35357: undone: touch second (here)",
        "127.0.0.1:35357: undone: touch first (here)",
    ]
    assert (tmp_path / "first").exists()
    assert not journal.path.exists()
    assert loadstone("fault", "--undo").returncode == 0


def test_undo_of_a_chosen_target_leaves_the_others(loadstone, tmp_path) -> None:
    clouds(tmp_path)
    note("touch mine")
    other = note("touch other", FaultTarget(None, ("keystone.example:5000",)))
    data = json.loads(loadstone("fault", "--undo", "--cloud", "a", "--json", "-").stdout)
    assert data == {
        "undone": [{"target": "127.0.0.1:35357", "step": "touch mine (here)"}],
        "problems": [],
    }
    assert len(other.steps()) == 1


def test_undo_of_a_provider_leaves_the_others(loadstone) -> None:
    note("touch provider", FaultTarget(None, ("127.0.0.1:9",)))
    other = note("touch other")
    words = ("--oidc", "http://127.0.0.1:9/", "--client-id", "c", "--json", "-")
    data = json.loads(loadstone("fault", "--undo", *words).stdout)
    assert [one["step"] for one in data["undone"]] == ["touch provider (here)"]
    assert len(other.steps()) == 1


def test_what_cannot_be_undone_stays_and_is_said_with_its_command(loadstone, tmp_path) -> None:
    note("touch first")
    note("echo why; exit 5")
    note("touch last")
    ended = loadstone("fault", "--undo")
    assert ended.returncode == 3
    assert (tmp_path / "first").exists()
    assert (tmp_path / "last").exists()
    assert "echo why; exit 5 ended with 5: why" in ended.stderr
    assert f"by hand: cd {tmp_path} && sh -c 'echo why; exit 5'" in ended.stderr
    ended = loadstone("capacity", "--budget", "20s")
    assert (ended.returncode, "echo why" in ended.stderr) == (3, True)


@pytest.mark.processes
def test_one_of_two_hosts_that_fails_does_not_stop_the_other(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    journal = note(f"touch {tmp_path}/undone")
    note("true", host="root@host.invalid")  # the last one is undone first
    outcome = undo_pending(journal)
    assert (tmp_path / "undone").exists()
    [failed] = outcome.failed
    assert failed.host == "root@host.invalid"
    assert [step.failure for step in journal.steps()] == [failed.failure]


@pytest.mark.processes
def test_an_undo_that_fails_is_repeated(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    script = tmp_path / "undo.sh"
    script.write_text(f"echo again >> {tmp_path}/log; test $(wc -l < {tmp_path}/log) -ge 3\n")
    journal = note(f"sh {script}")
    assert not undo_pending(journal).failed
    assert (tmp_path / "log").read_text() == "again\n" * 3
    assert not journal.path.exists()


@pytest.mark.processes
def test_the_fault_itself_repeats_its_undo(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faults.yaml").write_text(
        "keystone:\n  hosts: [here]\n"
        "  freeze: {do: 'true', undo: 'echo again >> log; test $(wc -l < log) -ge 2'}\n"
    )
    journal = UndoJournal(tmp_path / "journal.json", TARGET)
    injector = CommandInjector(journal, read_commands(tmp_path / "faults.yaml"))
    injector.over.set()
    done = injector.inject(read("freeze keystone service"))
    assert (done.failure, done.undone_s is not None) == ("", True)
    assert not journal.steps()


def test_secrets_are_not_on_disk_and_are_taken_from_the_environment(
    loadstone, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("GREETING", "hello world")
    journal = note('echo "$GREETING" > "$OS_USERNAME$OS_PASSWORD"')
    text = journal.path.read_text()
    assert PASSWORD not in text
    assert "hello world" in text
    assert journal.path.stat().st_mode & 0o777 == 0o600
    assert journal.path.parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("OS_PASSWORD")
    monkeypatch.delenv("GREETING")
    ended = loadstone("fault", "--undo")
    assert ended.returncode == 3
    assert "needs OS_PASSWORD, which is not kept on disk" in ended.stderr
    monkeypatch.setenv("OS_PASSWORD", "pw")
    assert loadstone("fault", "--undo").returncode == 0
    assert (tmp_path / "upw").read_text() == "hello world\n"


def test_secrets_of_a_command_are_not_printed(loadstone) -> None:
    note("false --password=s3cr3tvalue")
    told = loadstone("capacity", "--budget", "20s").stderr + loadstone("fault", "--undo").stderr
    assert "s3cr3tvalue" not in told
    assert "false --password=***" in told


@pytest.mark.processes
def test_a_file_names_further_variables_that_its_commands_need(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MY_CLUSTER", "east")
    (tmp_path / "faults.yaml").write_text(
        "keystone:\n  hosts: [here]\n  environment: [MY_CLUSTER]\n"
        "  freeze: {do: 'cp journal.json seen.json', undo: './undo.sh'}\n"
    )
    (tmp_path / "undo.sh").write_text("#!/bin/sh\n")
    (tmp_path / "undo.sh").chmod(0o700)
    monkeypatch.chdir(tmp_path)
    journal = UndoJournal(tmp_path / "journal.json", TARGET)
    injector = CommandInjector(journal, read_commands(tmp_path / "faults.yaml"))
    injector.over.set()
    assert injector.inject(read("freeze keystone service")).failure == ""
    [step, *_] = json.loads((tmp_path / "seen.json").read_text())["steps"]
    command = HostCommand.from_json(step["what"])
    assert command.variables["MY_CLUSTER"] == "east"
    assert command.directory == str(tmp_path)
    assert "OS_PASSWORD" not in command.variables


def test_a_lab_that_does_not_exist_is_not_said_to_be_without_faults(loadstone, tmp_path) -> None:
    lab(tmp_path, "two")
    assert loadstone("fault", "--undo", "--lab", "two").returncode == 0
    ended = loadstone("fault", "--undo", "--lab", "tow")
    assert ended.returncode == 2
    assert "no lab is called 'tow'" in ended.stderr


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": [{"undo": "command", "what": "{}"}]},
        {"steps": [{"undo": "command", "what": "[]"}]},
        {"steps": [{"undo": "cores", "what": "{}"}]},
        {"steps": ["command"]},
        {"target": {"lab": None, "endpoints": []}},
    ],
)
def test_a_damaged_journal_is_named_and_no_internal_error(loadstone, changed) -> None:
    journal = note("true")
    tree = json.loads(journal.path.read_text())
    for row in changed.get("steps", []):
        if isinstance(row, dict):
            row["owner"] = tree["steps"][0]["owner"]
    journal.path.write_text(json.dumps(tree | changed))
    ended = loadstone("fault", "--undo")
    assert (ended.returncode, f"{journal.path} cannot be read" in ended.stderr) == (3, True)


def test_an_unreadable_journal_stops_its_own_target_only(loadstone) -> None:
    journal = note("touch undone")
    journal.path.write_text("{")
    other = note("touch other", FaultTarget(None, ("keystone.example:5000",)))
    ended = loadstone("capacity", "--budget", "20s")
    assert (ended.returncode, f"{journal.path} cannot be read" in ended.stderr) == (3, True)
    ended = loadstone("fault", "--undo")
    assert (ended.returncode, f"{journal.path} cannot be read" in ended.stderr) == (3, True)
    assert not other.path.exists()


def test_a_purged_lab_takes_its_faults_with_it(loadstone, tmp_path) -> None:
    folder = lab(tmp_path)
    journal = UndoJournal.of(FaultTarget(folder))
    journal.note(Undo.UPGRADE, "30.0.0", dead_owner(RUN))
    note("exit 1", FaultTarget(folder))
    ended = loadstone("lab", "down", "two", "--purge", "--anyway")
    assert ended.returncode == 0
    assert "exit 1 (here)" in ended.stderr
    assert [step.undo for step in journal.steps()] == [Undo.COMMAND]


@pytest.mark.processes
def test_a_stopped_lab_is_whole_without_what_ended_with_its_processes(tmp_path) -> None:
    folder = lab(tmp_path)
    (folder / "keystone.conf").write_text("changed")
    (folder / "keystone.before").write_text("as it was")
    journal = UndoJournal(tmp_path / "journal.json", FaultTarget(folder))
    for kind, what in ((Undo.CONF, "as it was"), (Undo.START, "uwsgi-1 1"), (Undo.READY, "node-1")):
        journal.note(kind, what, dead_owner(RUN), "r")
    assert not undo_pending(journal).failed
    assert (folder / "keystone.conf").read_text() == "as it was"
    assert not (folder / "keystone.before").exists()


def test_two_processes_may_add_to_one_journal(tmp_path) -> None:
    one = UndoJournal(tmp_path / "journal.json", FaultTarget(None, ("a:1",)))
    other = UndoJournal(tmp_path / "journal.json", FaultTarget(None, ("b:1",)))
    first = one.note(Undo.END, "1", Owner.this())
    other.note(Undo.END, "2", Owner.this())
    one.remove(first)
    found = UndoJournal.at(one.path)
    assert [step.what for step in found.steps()] == ["2"]
    assert found.target.endpoints == ("a:1", "b:1")


def test_a_run_is_deleted_once_its_fault_is_undone(loadstone) -> None:
    journal = note("true", owner=dead_owner(RESULT.run_id))
    assert loadstone("results", "delete", "latest").returncode == 3
    assert loadstone("fault", "--undo").returncode == 0
    assert not journal.path.exists()
    assert loadstone("results", "delete", "latest").returncode == 0


def test_undo_and_do_exclude_each_other(loadstone) -> None:
    assert loadstone("fault").returncode == 2
    assert loadstone("fault", "--undo", "--do", "rotate fernet keys").returncode == 2
