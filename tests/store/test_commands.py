"""`loadstone results` and `loadstone report` as their users meet them."""

import json
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import pytest
from made_workloads import GIVEN, workload
from realistic import keystone

from loadstone.analysis.sla import Check
from loadstone.cli import main
from loadstone.report import badge, figures
from loadstone.result.model import WARM_UP
from loadstone.search.low_load import ALONE
from loadstone.store import owner
from loadstone.store.store import Store

RESULT, SAMPLES = keystone()


@dataclass
class Told:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def loadstone(tmp_path, monkeypatch, capfd):
    """The command line with a run in its store, in this process: starting one for each is slow."""
    with Store.open(tmp_path / "results") as store:
        store.begin(RESULT)
        store.keep_trial(RESULT.run_id, 0, RESULT.measurements[0].trials[2], SAMPLES[0, 3])
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Told:
        monkeypatch.setattr("sys.argv", ["loadstone", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return Told(ended.value.code, *capfd.readouterr())

    return run


def test_runs_are_listed_shown_and_deleted(loadstone):
    listed = json.loads(loadstone("results", "list", "--json", "-").stdout)
    assert [run["run_id"] for run in listed] == [RESULT.run_id]
    assert (listed[0]["origin"], listed[0]["target"]) == ("demo", "http://127.0.0.1:35357/v3")
    assert listed[0]["duration_s"] == 295
    assert listed[0]["configuration"]["workers"] == "2"
    shown = json.loads(loadstone("results", "show", "2026", "--json", "-").stdout)
    assert shown["measurements"][0]["capacity"]["rate_rps"] == 7.19
    assert "N = 7.19 per second" in loadstone("results", "show", "latest").stdout
    assert "keeps up: p50" in loadstone("results", "show", "latest").stdout
    assert "backlog grew by" in loadstone("results", "show", "latest", "--trials").stdout
    assert loadstone("results", "delete", "latest").stdout == f"deleted {RESULT.run_id}\n"
    assert "No results yet" in loadstone("results", "list").stdout


@pytest.mark.parametrize(
    ("policy", "purpose"), [("turns", WARM_UP), ("fixed", WARM_UP), ("prediction", ALONE)]
)
def test_the_list_shows_the_throughput_without_the_loads_that_prepare(tmp_path, policy, purpose):
    first, *others = RESULT.measurements[0].trials[:3]
    trials = (replace(first, purpose=purpose), *others)
    load = replace(RESULT.measurements[0], policy=policy, capacity=None, trials=trials)
    with Store.open(tmp_path / "store") as store:
        store.begin(replace(RESULT, measurements=(load,)))
        (entry,) = store.every()
    expected_rps = fmean(one.stats.throughput_rps for one in others)
    assert entry.findings[0].stretch_rps == pytest.approx(expected_rps)


def test_a_task_that_was_interrupted_has_held_nothing(loadstone, tmp_path):
    held = workload(SAMPLES[0, 1], (Check("failure_rate", True, ""),))
    cut = replace(held, status="interrupted", trials=())
    for status, measurements in (("finished", (held,)), ("interrupted", (held, cut))):
        run = replace(RESULT, kind="task", status=status, measurements=measurements)
        with Store.open(tmp_path / status) as store:
            store.begin(run)
            store.finish(run)
            for trial in held.trials:
                store.keep_trial(run.run_id, 0, trial, SAMPLES[0, 1])
    codes = {}
    for status in ("finished", "interrupted"):
        store = ("--store", str(tmp_path / status))
        shown = json.loads(loadstone("results", "show", "latest", "--json", "-", *store).stdout)
        is_green = badge.GREEN in loadstone("results", "badge", *store).stdout
        codes[status] = (
            shown["exit_code"],
            loadstone("results", "sla-check", *store).returncode,
            is_green,
        )
    assert codes == {"finished": (0, 0, True), "interrupted": (4, 4, False)}


def test_a_task_that_was_interrupted_before_its_first_load_decides_nothing(loadstone, tmp_path):
    cut = replace(workload(SAMPLES[0, 1]), status="interrupted", trials=())
    run = replace(RESULT, kind="task", status="interrupted", measurements=(cut,))
    with Store.open(tmp_path / "cut") as store:
        store.begin(run)
        store.finish(run)
    ended = loadstone("results", "sla-check", "--store", str(tmp_path / "cut"))
    assert ended.returncode == 4
    assert "has not ended a load, so no rule is decided" in ended.stderr


def test_a_task_without_rules_held_them_all(loadstone, tmp_path):
    free = workload(SAMPLES[0, 1])
    free = replace(free, trials=tuple(replace(one, checks=()) for one in free.trials))
    run = replace(RESULT, kind="task", status="finished", measurements=(free,))
    with Store.open(tmp_path / "free") as store:
        store.begin(run)
        store.finish(run)
    ended = loadstone("results", "sla-check", "--json", "-", "--store", str(tmp_path / "free"))
    assert (ended.returncode, ended.stdout.split()) == (0, ["[]"])


@pytest.mark.parametrize(
    ("number", "in_list", "sla"),
    [
        (1, "nothing ended", [figures.MISSING]),
        (7, "7 workloads: Authenticate.keystone 1 not ended", [*["held"] * 6, figures.MISSING]),
    ],
)
def test_a_workload_whose_run_was_killed_is_neither_held_nor_running(
    loadstone, tmp_path, monkeypatch, number, in_list, sla
):
    given = replace(GIVEN, sla={"failure_rate": {"max": 0}})
    held = workload(SAMPLES[0, 1], (Check("failure_rate", True, ""),), given)
    cut = replace(held, status="running", trials=())
    measurements = (*[held] * (number - 1), cut)
    monkeypatch.setattr(owner, "this_process", lambda: f"{socket.gethostname()}:1:0")
    with Store.open(tmp_path / "killed") as store:
        store.begin(
            replace(RESULT, kind="task", status="running", ended_at=None, measurements=measurements)
        )
    place = ("--store", str(tmp_path / "killed"))
    assert in_list in " ".join(loadstone("results", "list", *place).stdout.split())
    [listed] = json.loads(loadstone("results", "list", "--json", "-", *place).stdout)
    assert (listed["performed"][-1]["status"], listed["performed"][-1]["pass_sla"]) == (
        "interrupted",
        None,
    )
    trends = loadstone("results", "trends", *place).stdout.splitlines()
    assert [row.split()[-1] for row in trends if RESULT.run_id in row] == sla
    metrics = loadstone("report", "--as", "openmetrics", *place).stdout
    assert 'status="interrupted"' in metrics
    assert 'status="running"' not in metrics
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-", *place).stdout)
    last = shown["measurements"][-1]
    assert (last["status"], last["facts"][-1]["text"]) == (
        "interrupted",
        "interrupted: no result is stored",
    )


def test_of_many_runs_the_newest_are_listed(loadstone, tmp_path):
    with Store.open(tmp_path / "many") as store:
        for day in (1, 2, 3):
            run_id = f"2026110{day}-0931-ab12cd"
            began = f"2026-11-0{day}T09:31:07Z"
            store.begin(replace(RESULT, run_id=run_id, started_at=began, measurements=()))
    told = loadstone("results", "list", "--limit", "2", "--store", str(tmp_path / "many"))
    assert [line.split()[0] for line in told.stdout.splitlines() if "ab12cd" in line] == [
        "20261103-0931-ab12cd",
        "20261102-0931-ab12cd",
    ]
    assert loadstone("results", "list", "--limit", "0").returncode == 2


def test_a_run_travels_to_another_store(loadstone, tmp_path):
    file, other = str(tmp_path / "run.zip"), str(tmp_path / "other")
    assert loadstone("results", "export", "latest", file).returncode == 0
    assert RESULT.run_id in loadstone("results", "import", file, "--store", other).stdout
    assert RESULT.run_id in loadstone("results", "list", "--store", other).stdout


def test_the_report_is_written_and_its_path_is_all_that_is_printed(loadstone, tmp_path):
    told = loadstone("report", "latest")
    assert (told.returncode, told.stderr) == (0, "")
    assert Path(told.stdout.strip()) == (
        tmp_path / "results" / "runs" / RESULT.run_id / "report.html"
    )
    assert loadstone("report", "-o", "mine.html").stdout == "mine.html\n"
    assert "Latency over time" in (tmp_path / "mine.html").read_text()


def test_the_report_comes_in_the_forms_of_other_programs(loadstone, tmp_path):
    assert loadstone("report", "--as", "openmetrics").stdout.endswith("# EOF\n")
    for stdout in ("-", "/dev/stdout"):
        told = loadstone("report", "--as", "junit", "-o", stdout)
        assert told.stdout.endswith("</testsuites>\n")
    told = loadstone("report", "--as", "junit", "-o", "junit.xml")
    assert told.stdout == "junit.xml\n"
    assert "<testsuites" in (tmp_path / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("results", "show", "nope"), 2, "no run 'nope'; loadstone results list shows all"),
        (("results", "show", "20261121-0931-ab12ce"), 2, "did you mean 20261121-0931-ab12cd?"),
        (("results", "show", "20261124-1015-77fe01"), 2, "-77fe01'; loadstone results list"),
        (("results", "show", "lastest"), 2, "no run 'lastest'; did you mean latest?"),
        (("results", "list", "--store", "/proc/nowhere"), 2, "no such folder"),
        (("results", "import", "pyvenv.cfg", "--store", "/proc/x"), 3, "cannot hold results"),
        (("report", "--as", "rally-json"), 2, "is not a task (demo)"),
        (("report", "latest", "2026", "-o", "x"), 2, "run 20261121-0931-ab12cd is given twice"),
        (("results", "export", "latest", "-"), 2, "not written to stdout; name a file"),
        (("report", "workers-1"), 2, "workers-1 is a study, not a run: loadstone study show wor"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_code(loadstone, tmp_path, words, code, line):
    (tmp_path / "pyvenv.cfg").write_text("")
    (tmp_path / "results" / "studies" / "workers-1").mkdir(parents=True)
    told = loadstone(*words)
    assert told.returncode == code
    assert told.stdout == ""
    assert line in told.stderr
    assert told.stderr.count("\n") == 1


def test_reading_makes_no_store(loadstone, tmp_path, monkeypatch):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "fresh"))
    assert "No results yet" in loadstone("results", "list").stdout
    assert loadstone("results", "list", "--json", "-").stdout == "[]\n"
    assert loadstone("results", "show", "latest").returncode == 2
    assert loadstone("report").returncode == 2
    assert not (tmp_path / "fresh").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe\x00", "it is not text"),
        (b"{", "it is not JSON (line 1: "),
        (b"{}", '"tasks" is missing in it'),
        (b'{"tasks": 3}', "its values are not in the form that Rally writes"),
    ],
)
def test_what_is_no_result_is_said_in_plain_words(loadstone, tmp_path, content, why):
    (tmp_path / "file").write_bytes(content)
    told = loadstone("results", "import", "file")
    assert told.returncode == 2
    assert why in told.stderr
    assert "Error" not in told.stderr


def test_a_failure_is_data_where_data_was_asked_for(loadstone):
    told = loadstone("results", "show", "none", "--json", "-")
    assert json.loads(told.stdout)["exit_code"] == told.returncode == 2
    assert json.loads(told.stdout)["error"] in told.stderr
    assert loadstone("results", "show", "none").stdout == ""


def test_digits_are_whole_where_the_terminal_is_narrow(loadstone, monkeypatch):
    wide = loadstone("results", "show", "latest", "--trials").stdout
    monkeypatch.setenv("COLUMNS", "40")
    narrow = loadstone("results", "show", "latest", "--trials").stdout
    row = next(line for line in wide.splitlines() if "6.90" in line and "sustained" in line)
    assert row.rstrip() in [line.rstrip() for line in narrow.splitlines()]
    assert "…" not in narrow + loadstone("results", "list").stdout


def test_a_run_is_found_by_its_beginning_although_a_study_begins_alike(loadstone, tmp_path):
    study = tmp_path / "results" / "studies" / f"{RESULT.run_id[:8]}-2000-ffffff"
    study.mkdir(parents=True)
    assert loadstone("results", "show", RESULT.run_id[:8]).returncode == 0
    refused = loadstone("results", "show", study.name)
    assert (refused.returncode, "is a study" in refused.stderr) == (2, True)


def test_trends_are_written_in_both_formats_that_are_asked_for(loadstone, tmp_path):
    with Store.open(tmp_path / "results") as store:
        store.finish(RESULT)
    told = loadstone("results", "trends", "--json", "trends.json", "-o", "trends.html")
    assert told.returncode == 0
    assert json.loads((tmp_path / "trends.json").read_text())
    assert "<html" in (tmp_path / "trends.html").read_text()


def test_without_trends_stdout_has_nothing_but_what_is_asked_for(loadstone):
    wanted = ("--tag", "branch=none", "--json", "-", "-o", "trends.html")
    told = loadstone("results", "trends", *wanted)
    nothing = "No run with the tag branch=none has an N or a workload.\n"
    assert (json.loads(told.stdout), told.stderr) == ([], nothing)
