"""`loadstone results` and `loadstone report` as their users meet them."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from realistic import keystone

from loadstone.cli import main
from loadstone.store import Store

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
        store.keep_trial(RESULT.run_id, 0, RESULT.findings[0].trials[2], SAMPLES[0, 3])
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
    shown = json.loads(loadstone("results", "show", "2026", "--json", "-").stdout)
    assert shown["findings"][0]["capacity"]["rate_rps"] == 7.19
    assert "N: 7.19 per second" in loadstone("results", "show", "latest").stdout
    assert loadstone("results", "delete", "latest").stdout == f"deleted {RESULT.run_id}\n"
    assert "No results yet" in loadstone("results", "list").stdout


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
    told = loadstone("report", "--as", "junit", "-o", "junit.xml")
    assert told.stdout == "junit.xml\n"
    assert "<testsuites" in (tmp_path / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("results", "show", "2019"), 2, "no run '2019'; the nearest is 20261121-0931-ab12cd"),
        (("results", "list", "--store", "/proc/nowhere"), 3, "cannot hold results"),
        (("report", "-o", "/proc/report.html"), 3, "cannot write /proc/report.html"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_code(loadstone, words, code, line):
    told = loadstone(*words)
    assert told.returncode == code
    assert told.stdout == ""
    assert line in told.stderr
    assert told.stderr.count("\n") == 1
