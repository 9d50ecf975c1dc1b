"""Faults that commands of a file carry out: on real clouds, here on `loadstone serve`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from documents import workloads
from known_service import known_service

from loadstone.errors import InvalidInput
from loadstone.faults.commands import CommandInjector, carry_out_marked, read_commands
from loadstone.faults.host import HostCommand
from loadstone.faults.journal import FaultTarget, Owner, Undo, UndoJournal
from loadstone.faults.sentence import read
from loadstone.faults.undo import undo_pending
from loadstone.lab import processes


def written(folder: Path, text: str) -> Path:
    path = folder / "faults.yaml"
    path.write_text(text)
    return path


def journal_in(folder: Path) -> UndoJournal:
    return UndoJournal(folder / "journal.json", FaultTarget(None, ("127.0.0.1:9",)))


@pytest.fixture
def commands(tmp_path: Path):
    text = (
        "keystone:\n"
        "  hosts: [here, here]\n"
        f"  freeze: {{do: 'touch {tmp_path}/frozen', undo: 'rm {tmp_path}/frozen'}}\n"
        "  restart: 'false'\n"
    )
    return read_commands(written(tmp_path, text))


@pytest.mark.processes
def test_what_is_done_is_undone(tmp_path: Path, commands) -> None:
    injector = CommandInjector(journal_in(tmp_path), commands)
    done = injector.inject(read("freeze keystone service on one node for 0.1 seconds"))
    assert (done.failure, done.targets) == ("", ("here",))
    assert done.undone_s - done.began_s > 0.1
    assert not (tmp_path / "frozen").exists()
    assert not (tmp_path / "journal.json").exists()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("lose 2.5% of packets on one node", "2.5"),
        ("delay network on one node by 100 ms", "100"),
        ("lose 0.00001% of packets on one node", "0.00001"),
        ("disconnect storage network on one node", "storage"),
        ("disconnect brTenant network on one node", "brTenant"),
        ("rolling restart of keystone with token.a=x;'y'", "token.a x;'y'"),
        ("upgrade keystone to 30.0.0", "30.0.0"),
    ],
)
@pytest.mark.parametrize("host", ["here", "far"])
def test_what_a_sentence_says_reaches_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, sentence: str, expected: str
) -> None:
    ssh = tmp_path / "ssh"  # which passes no variables on
    ssh.write_text(
        '#!/bin/sh\nfor command; do :; done\nexec env -i PATH="$PATH" sh -c "$command"\n'
    )
    ssh.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fault = read(f"{sentence} for 0.1 seconds" if "node" in sentence else sentence)
    names = " ".join(f"${name}" for name in fault.parameters)
    out = tmp_path / "out"
    action = {"do": f"echo {names} >> {out}", "undo": f"echo undo {names} >> {out}"}
    service = {"hosts": [host], fault.verb.value: action}
    file = written(tmp_path, json.dumps({fault.service or "node": service}))
    injector = CommandInjector(journal_in(tmp_path), read_commands(file))
    injector.over.set()
    assert injector.inject(fault).failure == ""
    assert out.read_text().splitlines() == [expected, f"undo {expected}"]


@pytest.mark.processes
def test_a_command_that_runs_here_for_several_nodes_knows_which(tmp_path: Path) -> None:
    out = tmp_path / "out"
    action = f"{{do: 'echo $FAULT_NODE >> {out}', undo: 'echo undo $FAULT_NODE >> {out}'}}"
    file = written(tmp_path, f"node: {{hosts: [here, here], take out: {action}}}")
    injector = CommandInjector(journal_in(tmp_path), read_commands(file))
    injector.over.set()
    for sentence in ("take node 2 out", "take all nodes out"):
        assert injector.inject(read(sentence)).failure == ""
    assert out.read_text().split("\n") == [
        *("2", "undo 2"),
        *("1", "2", "undo 2", "undo 1", ""),
    ]


def test_names_of_services_are_found_whatever_their_case(tmp_path: Path) -> None:
    file = written(tmp_path, "Nova-API: {hosts: [here], kill: 'true'}")
    service, _ = read_commands(file).find(read("kill Nova-API service"))
    assert service.hosts == ("here",)


@pytest.mark.processes
def test_a_command_that_fails_is_said(tmp_path: Path, commands) -> None:
    done = CommandInjector(journal_in(tmp_path), commands).inject(read("restart keystone service"))
    assert "false ended with 1" in done.failure


@pytest.mark.processes
def test_an_interrupted_command_ends_before_its_undo(tmp_path: Path) -> None:
    begun, done = tmp_path / "begun", tmp_path / "done"

    def interrupt() -> None:
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        carry_out_marked(
            journal_in(tmp_path),
            Owner.this(),
            f"touch {begun}; sleep 60; touch {done}",
            variables={"BEGUN_BY": str(tmp_path)},
        )
    assert not list(processes.with_variable("BEGUN_BY", str(tmp_path)))
    assert not done.exists()
    assert not (tmp_path / "journal.json").exists()


@pytest.mark.processes
def test_a_command_that_is_interrupted_in_its_start_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = subprocess.Popen, []

    def interrupted(*words: Any, **how: Any) -> None:
        started.append(start(*words, **how))
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        carry_out_marked(
            journal_in(tmp_path), Owner.this(), "sleep 60", variables={"BEGUN_BY": str(tmp_path)}
        )
    started[0].wait()
    assert not list(processes.with_variable("BEGUN_BY", str(tmp_path)))


@pytest.mark.processes
def test_the_journal_undoes_commands_also_after_a_boot(tmp_path: Path) -> None:
    (tmp_path / "frozen").touch()
    command = HostCommand.here_and_now("here", f"rm {tmp_path}/frozen")
    journal = journal_in(tmp_path)
    journal.note(Undo.COMMAND, command.as_json(), Owner(1, 1, "another boot", ""))
    assert len(undo_pending(journal).undone) == 1
    assert not (tmp_path / "frozen").exists()
    assert processes.boot_id() != "another boot"


@pytest.mark.processes
def test_a_command_on_another_machine_ends_before_its_undo(tmp_path: Path, monkeypatch) -> None:
    ssh, begun, broken, ended = (tmp_path / name for name in ("ssh", "begun", "broken", "ended"))
    ssh.write_text('#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n')
    ssh.chmod(0o700)
    os.mkfifo(begun)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    do = f"echo > {begun}; sleep 1; touch {broken} {ended}"
    text = f"keystone: {{hosts: [far], kill: {{do: '{do}', undo: 'rm -f {broken}'}}}}"
    code = (
        "import sys; from pathlib import Path;"
        "from loadstone.faults.commands import CommandInjector, read_commands;"
        "from loadstone.faults.journal import FaultTarget, UndoJournal;"
        "from loadstone.faults.sentence import read;"
        "target = FaultTarget(None, ('127.0.0.1:9',));"
        "journal = UndoJournal(Path(sys.argv[1]), target);"
        "commands = read_commands(Path(sys.argv[2]));"
        "CommandInjector(journal, commands).inject(read('kill keystone service'))"
    )
    journal = journal_in(tmp_path)
    file = written(tmp_path, text)
    with subprocess.Popen((sys.executable, "-c", code, str(journal.path), str(file))) as process:
        assert begun.read_text()
        process.kill()
    assert len(undo_pending(journal).undone) == 2
    assert ended.exists()
    assert not broken.exists()


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("kill keystone service", "keystone has no kill; choose from freeze, restart"),
        ("kill mysql service", "has no service mysql; choose from keystone"),
        ("freeze keystone service on node 3", "no node 3"),
    ],
)
def test_what_a_file_does_not_have_is_said(
    tmp_path: Path, commands, sentence: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        CommandInjector(journal_in(tmp_path), commands).check(read(sentence))


@pytest.mark.parametrize(
    "option",
    [
        "ldap.password=top",
        "DEFAULT.admin_token=top",
        "ldap.Password=top",
        "database.connection=mysql://keystone:top@db/k",
    ],
)
def test_a_secret_option_is_refused_without_its_value(tmp_path: Path, option: str) -> None:
    file = written(tmp_path, "keystone: {hosts: [here], configure: {do: a, undo: b}}")
    injector = CommandInjector(journal_in(tmp_path), read_commands(file))
    injector.check(read("rolling restart of keystone with token.expiration=7200"))
    with pytest.raises(InvalidInput, match=f"the value of {option.partition('=')[0]} is") as told:
        injector.check(read(f"rolling restart of keystone with {option}"))
    assert "top" not in str(told.value)


@pytest.mark.processes
def test_an_undo_by_hand_runs_nothing_where_its_folder_is_gone(tmp_path: Path) -> None:
    gone = HostCommand(
        "here", "export FAULT_PERCENT=10; touch $PWD/undone", str(tmp_path / "x"), {}
    )
    subprocess.run(gone.by_hand, shell=True, cwd=tmp_path, check=False)
    assert not (tmp_path / "undone").exists()
    (tmp_path / "x").mkdir()
    subprocess.run(gone.by_hand, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "x" / "undone").exists()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "must be services"),
        ("keystone: {kill: x}", "must have hosts"),
        ("keystone: {hosts: ['-oProxyCommand=x'], kill: x}", "is not a host"),
        ("keystone: {hosts: [''], kill: x}", "'' is not a host"),
        ("keystone: {hosts: [~], kill: x}", "'' is not a host"),
        ("Nova: {hosts: [a]}\nnova: {hosts: [b]}", "differ in upper and lower case only"),
        ("keystone:\n  hosts: [a]\n  smash: x", r"faults.yaml:3: keystone: no action 'smash'"),
        ("node: {hosts: [a], overload: x}", "no action 'overload'"),
        ("keystone: {hosts: [a], kill: {undo: x}}", "must be a command"),
        ("keystone: {hosts: [a], kill: {do: x, undo: }}", "kill: undo must be a command, as text"),
        ("keystone: {hosts: [a], kill: {do: [systemctl, x]}}", "kill: do must be a command"),
        ("keystone: {hosts: [a], kill: ''}", "kill: do must be a command, as text, not ''"),
        ("keystone: {hosts: [a]}\nkeystone: {hosts: [b]}", ":2: 'keystone' is given twice"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_commands(written(tmp_path, text))


@pytest.mark.processes
def test_a_task_with_a_fault_needs_a_lab_or_commands(tmp_path: Path) -> None:
    task = tmp_path / "task.json"
    hook = {
        "action": {"fault_injection": "freeze keystone service for 0.3 seconds"},
        "trigger": {"event": {"unit": "time", "at": [1]}},
    }
    workload = {
        "scenario": {"Authenticate.keystone": {}},
        "runner": {"constant_for_duration": {"duration": 3, "concurrency": 2}},
        "hooks": [hook],
    }
    task.write_text(
        json.dumps({"version": 2, "title": "t", "subtasks": [{"title": "t", **workload}]})
    )
    loadstone = CommandLine(tmp_path)
    with known_service(4, 0.01) as known:
        refused = loadstone("run", str(task), url=known.url)
        assert refused.returncode == 2
        assert "is carried out on a lab" in refused.stderr
        pid = known.process.pid
        freeze = f"{{do: 'kill -STOP {pid}', undo: 'kill -CONT {pid}'}}"
        file = written(tmp_path, f"keystone: {{hosts: [here], freeze: {freeze}}}")
        words = ("--faults", str(file), "--yes-break-this-target", "--json", "-")
        done = loadstone("run", str(task), *words, url=known.url)
    assert done.returncode == 0, done.stderr
    [workload] = workloads(json.loads(done.stdout))
    [fault] = workload["faults"]
    assert (fault["targets"], fault["failed"]) == (["here"], 0)
