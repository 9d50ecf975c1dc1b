"""Internal errors: one line, a crash file, exit code 70."""

import errno
import json
import re
import stat
from pathlib import Path

import pytest

SECRET = "hunter2-of-the-crash"


@pytest.fixture
def broken(monkeypatch):
    """A bug in the list of runs, whose message holds a secret."""

    def fail(*_):
        raise RuntimeError(f"no route for OS_PASSWORD {SECRET}, password={SECRET}")

    monkeypatch.setattr("loadstone.cli.results.open_to_read", fail)
    monkeypatch.setenv("LOADSTONE_TOKEN", SECRET)


def crash_file(told):
    (path,) = re.findall(r"\S+/crashes/\S+\.txt", told)
    return Path(path)


@pytest.mark.usefixtures("broken")
def test_an_internal_error_is_one_line_and_a_crash_file(at_once):
    ended = at_once("results", "list")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (70, "", 1)
    path = crash_file(ended.stderr)
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "Traceback" in text
    assert "command: loadstone results list" in text
    assert re.search(r"^loadstone \d", text)
    assert "RuntimeError: no route" in text
    assert SECRET not in text + ended.stderr


@pytest.mark.usefixtures("broken")
def test_the_command_in_a_crash_file_is_masked(at_once):
    ended = at_once("results", "list", "--store", f"postgresql://u:{SECRET}@127.0.0.1:1/x")
    text = crash_file(ended.stderr).read_text()
    assert "postgresql://***@" in text
    assert SECRET not in text


@pytest.mark.usefixtures("broken")
def test_an_internal_error_is_data_where_data_was_asked_for(at_once):
    ended = at_once("results", "list", "--json", "-")
    found = json.loads(ended.stdout)
    assert ended.returncode == found["exit_code"] == 70
    assert found["error"] in ended.stderr


def test_wrong_usage_is_data_where_data_was_asked_for(at_once):
    ended = at_once("results", "list", "--bogus", "--json", "-")
    found = json.loads(ended.stdout)
    assert ended.returncode == found["exit_code"] == 2
    assert found["error"] in ended.stderr


@pytest.mark.usefixtures("broken")
def test_a_crash_file_goes_elsewhere_if_the_home_cannot_hold_it(at_once, tmp_path):
    (tmp_path / "crashes").write_text("a file where the folder belongs")
    ended = at_once("results", "list")
    assert ended.returncode == 70
    (path,) = re.findall(r"\S+/loadstone-crash-\S+\.txt", ended.stderr)
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert "Traceback" in Path(path).read_text()
    Path(path).unlink()


@pytest.mark.parametrize(("style", "code"), [("loadstone", 70), ("rally", 1)])
def test_in_rallys_style_a_task_that_crashed_could_not_run(at_once, monkeypatch, style, code):
    def fail(*_):
        raise RuntimeError("bug")

    monkeypatch.setattr("loadstone.rally.task.read.read", fail)
    ended = at_once("run", "task.yaml", "--exit-code-style", style)
    assert ended.returncode == code
    assert "RuntimeError: bug" in crash_file(ended.stderr).read_text()


@pytest.mark.parametrize(("style", "code"), [("loadstone", 2), ("rally", 1)])
def test_in_rallys_style_wrong_usage_is_no_broken_sla(at_once, style, code):
    ended = at_once("run", "-", "--task-args", "-", "--exit-code-style", style)
    assert ended.returncode == code
    assert "only one of TASK and --task-args can come from stdin" in ended.stderr


@pytest.mark.parametrize(("style", "code"), [("loadstone", 2), ("rally", 1)])
def test_in_rallys_style_an_option_that_is_refused_is_no_broken_sla(at_once, style, code):
    words = ("--max-rate", "soon", "--exit-code-style", style)
    assert at_once("run", "task.yaml", *words).returncode == code


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_a_failure_is_data_wherever_stdout_is_asked_for(at_once, name):
    ended = at_once("results", "show", "none-such", "--json", name)
    assert json.loads(ended.stdout)["exit_code"] == ended.returncode != 0


def test_only_one_file_comes_from_stdin(at_once):
    ended = at_once("run", "task.yaml", "--task-args", "-", "--task-args-file", "-")
    assert ended.returncode == 2
    said = "only one of --task-args-file and --task-args can come from stdin"
    assert said in ended.stderr


@pytest.mark.usefixtures("broken")
def test_only_the_newest_crash_files_are_kept(at_once, tmp_path):
    folder = tmp_path / "crashes"
    folder.mkdir(mode=0o700)
    for number in range(30):
        (folder / f"20250101-0000{number:02}-1.txt").write_text("old")
    (folder / "notes.md").write_text("mine")
    newest = crash_file(at_once("results", "list").stderr)
    left = sorted(path.name for path in folder.glob("*.txt"))
    assert len(left) == 20
    assert newest.name == left[-1]
    assert left[0] == "20250101-000011-1.txt"
    assert (folder / "notes.md").exists()


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ((), "the disks of the results and of temporary files"),
        (("/tmp/some-file",), "the disk of /tmp/some-file"),
    ],
)
def test_a_full_disk_is_no_internal_error(at_once, monkeypatch, tmp_path, more, place):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device", *more)

    monkeypatch.setattr("loadstone.cli.results.open_to_read", fail)
    ended = at_once("results", "list")
    line = f"loadstone: No space left on device; free some space on {place}\n"
    assert (ended.returncode, ended.stderr) == (3, line)
    assert not (tmp_path / "crashes").exists()
