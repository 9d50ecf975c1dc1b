"""`make verify`: marks of claims in the docs, parts, and the table of claims."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from loadstone.study import read
from verification import check, claim, page, parts, run
from verification.claim import Claim, Machine, Result, Results
from verification.marks import blocks
from verification.part import Part

ROOT = Path(__file__).parent.parent
ROW = Claim("speed", "It took 3 s.", "2026-11-01 (abc1234)", by_hand="a watch")


def problems_of(text: str, *rows: Claim) -> list[str]:
    return list(check.problems({"page.md": blocks(text)}, {row.id: row for row in rows}))


@pytest.mark.parametrize(
    "sentence",
    [
        "The median was 3.2 ms.",
        "A request costs 7.2 µs.",
        "Measured on 2 cores: N is 200.",
        "In 19 of 20 searches the interval held N.",
        "Every N was within 2 % of the capacity.",
        "It is 12 times as fast.",
        "It uses 0.2 % of a core.",
        "The start took 195 ms.",
        "It sends 100,000 requests a second.",
        "- A run on 2026-11-22 ended so.",
        "| database | N per s |\n| --- | --- |\n| MariaDB | 6.6 |\n| PostgreSQL | 6.5 |",
    ],
)
def test_a_measured_figure_without_a_mark_is_a_problem(sentence):
    (problem,) = problems_of(f"# Title\n\nSome words.\n\n{sentence}\n")
    assert problem.startswith("page.md:5: a measured figure without a claim")


@pytest.mark.parametrize(
    "text",
    [
        "Requests are counted once a second.",
        "The default is 5 s, the maximum 600 s.",
        "    it took 3 s\n",
        "```\nit took 3 s\n```",
        "<!-- example -->\nRally took 3 s.",
        "- Rally took 3 s. <!-- example -->",
        "| option | what |\n| --- | --- |\n| `--rate` | the rate, 20 by default |",
    ],
)
def test_other_words_need_no_mark(text):
    assert problems_of(f"Words.\n\n{text}\n") == []


def test_the_mark_of_a_paragraph_that_introduces_a_table_covers_it():
    table = "| what | s |\n| --- | --- |\n| start | 3 |"
    assert problems_of(f"<!-- claim: speed -->\nIt took 3 s. In detail:\n\n{table}\n", ROW) == []


def test_a_mark_covers_no_further_paragraph():
    text = "<!-- claim: speed -->\nIt took 3 s.\n\nThe median was 2 s.\n"
    (problem,) = problems_of(text, ROW)
    assert "'The median was 2 s.'" in problem


def test_a_mark_before_a_list_covers_its_items_and_one_in_an_item_covers_that_item():
    marked = "<!-- claim: speed -->\n- It took 3 s.\n- It took 4 s.\n"
    assert problems_of(marked, ROW) == []
    (problem,) = problems_of("- It took 3 s. <!-- claim: speed -->\n- It took 4 s.\n", ROW)
    assert "'- It took 4 s.'" in problem


def test_a_claim_without_a_row_and_a_row_without_a_page_are_problems():
    found = problems_of("<!-- claim: other -->\nIt took 3 s.\n", ROW)
    assert found == [
        "page.md:2: claim other has no row in verification/claims.yaml",
        "claims.yaml: speed: no page has the mark <!-- claim: speed -->",
    ]


def test_a_row_states_its_claim_word_for_word():
    (problem,) = problems_of("<!-- claim: speed -->\nIt took 4 s.\n", ROW)
    assert problem == "claims.yaml: speed: the docs do not state 'It took 3 s.'"


def test_a_row_whose_part_does_not_exist_is_a_problem():
    row = Claim("speed", "It took 3 s.", "", part="none", figure=".*")
    (problem,) = problems_of("<!-- claim: speed -->\nIt took 3 s.\n", row)
    assert problem == "claims.yaml: speed: there is no part none"


def test_a_row_has_a_part_or_says_how_it_was_measured_by_hand():
    with pytest.raises(ValueError, match="give one of part and by_hand"):
        Claim("speed", "It took 3 s.", "")
    with pytest.raises(ValueError, match="give the figure"):
        Claim("speed", "It took 3 s.", "", part="engine-http")


@pytest.mark.processes
def test_a_page_that_was_edited_by_hand_is_out_of_date(tmp_path, monkeypatch):
    edited = tmp_path / "verification.md"
    edited.write_text(page.PAGE.read_text().replace("not measured", "measured", 1))
    monkeypatch.setattr(page, "PAGE", edited)
    assert check.every_problem() == [
        "docs/verification.md is out of date: run `python -m verification --page`"
    ]


def rendered(results: Results) -> str:
    (line,) = [
        line
        for line in page.render({"speed": ROW}, results, {}, ()).splitlines()
        if line.startswith("| It took 3 s.")
    ]
    return line


def test_a_claim_that_was_never_measured_says_since_when_the_docs_state_it():
    line = rendered(Results({}, {}))
    assert "| not measured since 2026-11-01 (abc1234) |" in line


def test_a_row_shows_the_figure_with_date_commit_and_machine():
    quiet, busy = Machine(2, "EPYC", 0.1), Machine(2, "EPYC", 3.0)
    found = Result("3.1 | 3.2 s", passed=True, date="2026-12-01", commit="def", machine=quiet)
    line = rendered(Results({"speed": found}, {}))
    assert line.endswith("| 3.1 · 3.2 s | 2026-12-01 | def | 2 cores, EPYC |")
    failed = Result("", passed=False, date="2026-12-01", commit="def", machine=busy)
    line = rendered(Results({"speed": failed}, {}))
    assert line.endswith("| **failed** | 2026-12-01 | def | 2 cores, EPYC, busy: load 3.0 |")


@pytest.mark.parametrize("part", parts.every(), ids=lambda part: part.name)
def test_what_a_part_runs_exists(part):
    for command in (part.command(), part.command(is_quick=True)):
        if command[1:2] == ["-m"]:
            assert find_spec(command[2]) is not None
        if command[1:3] == ["-m", "verification.studies"]:
            assert command[3] in read.builtin()
        if command[1:3] == ["-m", "pytest"]:
            paths = [word for word in command if word.startswith("tests/")]
            assert paths
            assert all((ROOT / path).exists() for path in paths)


def test_each_study_is_a_part():
    assert {part.name for part in parts.studies()} == {f"study-{one}" for one in read.builtin()}


def test_names_and_topics_of_parts_are_unique():
    names = [part.name for part in parts.every()] + list(parts.TOPICS)
    assert len(names) == len(set(names))
    assert {part.topic for part in parts.every()} <= set(parts.TOPICS)


def test_parts_are_chosen_by_name_and_by_topic():
    assert {part.topic for part in parts.chosen("fleet")} == {"fleet"}
    assert [part.name for part in parts.chosen("kills, engine-http")] == ["engine-http", "kills"]
    assert parts.chosen("") == parts.every()
    with pytest.raises(LookupError, match="no part or topic enginge; `make verify LIST=1`"):
        parts.chosen("enginge,fleet")


def test_tests_marked_verify_are_parts_by_file_of_live_and_by_folder(tmp_path):
    marked, other = "pytestmark = pytest.mark.verify\n", "pytestmark = pytest.mark.live\n"
    texts = {"live/test_beside_rally.py": marked, "live/test_lab.py": other}
    texts |= {"engine/test_run.py": other, "engine/fleet/test_load.py": marked}
    for name, text in texts.items():
        file = tmp_path / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = {part.name: part.shown() for part in parts.marked(tmp_path / "tests")}
    assert found == {
        "tests-engine": "python -m pytest -q -m verify tests/engine",
        "live-beside-rally": "python -m pytest -q -m verify tests/live/test_beside_rally.py",
    }


def printing(code: str, about_s: float = 1.0, needs: tuple[str, ...] = ()) -> Part:
    return Part("printing", "engine", "", about_s, f"{{python}} -c {shlex.quote(code)}", "", needs)


TABLE = Claim("table", "", "", part="printing", figure=r"^\| (\w+) \| (\d+) \|")


@pytest.mark.processes
def test_the_figure_of_a_claim_is_read_from_the_output_of_its_part(tmp_path):
    ended = run.carry_out(printing("print('| a | 1 |'); print('| b | 2 |')"), [TABLE], tmp_path)
    assert ended.outcome is run.Outcome.PASSED
    assert ended.figures == {"table": "a 1; b 2"}


@pytest.mark.processes
def test_a_part_that_states_no_figure_of_its_claim_has_failed(tmp_path):
    ended = run.carry_out(printing("print('nothing')"), [TABLE], tmp_path)
    assert ended.outcome is run.Outcome.FAILED
    assert ended.why == "no figure of table in its output"
    assert (tmp_path / "printing.log").read_text() == "nothing\n"


@pytest.mark.processes
def test_a_part_that_fails_says_with_what_and_its_result_is_no_success(tmp_path):
    ended = run.carry_out(printing("print('| a | 1 |'); exit(3)"), [TABLE], tmp_path)
    assert (ended.outcome, ended.why) == (run.Outcome.FAILED, "exit code 3")
    kept = run.recorded(Results({}, {}), ended, "abc")
    assert kept.claims["table"].passed is False
    assert kept.seconds == {}


@pytest.mark.processes
def test_a_part_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("verification.part.SHORTEST_LIMIT_S", 0.0)
    part = printing("import time; time.sleep(60)", about_s=0.1)
    ended = run.carry_out(part, [], tmp_path)
    assert ended.outcome is run.Outcome.FAILED
    assert ended.why.startswith("took longer than")


INTERRUPTED = """
import sys
from pathlib import Path
from verification import __main__, parts, run
from verification.part import Part

pipe = sys.argv.pop()
code = "exec 3> " + pipe + "; sleep 60 & echo begun >&3; wait"
parts.chosen = lambda names: (Part("waiting", "engine", "", 1.0, f"sh -c '{code}'"),)
run.carry_out.__defaults__ = (Path(pipe).parent,)
sys.exit(__main__.main())
"""


@pytest.mark.processes
def test_sigterm_ends_the_part_that_runs_and_what_it_started(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = (sys.executable, "-c", INTERRUPTED, "--quick", str(pipe))
    with (
        subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process,
        pipe.open() as held,  # by the part and its child
    ):
        assert held.readline() == "begun\n"
        process.terminate()
        printed, _ = process.communicate()
        assert process.returncode == 143
        assert held.read() == ""
    assert "interrupted" in printed


def test_a_part_that_needs_what_is_not_here_is_left_out_and_keeps_its_result(tmp_path):
    old = Result("3 s", passed=True, date="2026-12-01", commit="def", machine=Machine(2, "E", 0.0))
    ended = run.carry_out(printing("", needs=("no-such-program",)), [TABLE], tmp_path)
    assert (ended.outcome, ended.why) == (run.Outcome.LEFT_OUT, "needs no-such-program")
    kept = Results({"table": old}, {})
    assert run.recorded(kept, ended, "abc") == kept


@pytest.mark.processes
def test_a_run_goes_on_after_a_failure_and_keeps_what_was_found(tmp_path, monkeypatch):
    results = tmp_path / "results.json"
    claim.keep(Results({}, {}), results)
    monkeypatch.setattr(run.claim, "results", lambda: claim_results(results))
    monkeypatch.setattr(run.claim, "keep", lambda kept: claim_keep(kept, results))
    monkeypatch.setattr(run.claim, "claims", lambda: {"table": TABLE})
    monkeypatch.setattr(run, "LOGS", tmp_path)
    monkeypatch.setattr(run.carry_out, "__defaults__", (tmp_path,))
    failing = Part("failing", "engine", "", 1.0, "no-such-program")
    ended = run.run([failing, printing("print('| a | 1 |')")])
    assert [one.outcome for one in ended] == [run.Outcome.FAILED, run.Outcome.PASSED]
    assert claim_results(results).claims["table"].figure == "a 1"


claim_results, claim_keep = claim.results, claim.keep


def test_the_figures_of_all_claims_are_regular_expressions():
    for row in claim.claims().values():
        re.compile(row.figure)


def test_an_unknown_part_is_a_usage_error(monkeypatch, capsys):
    from verification.__main__ import main

    monkeypatch.setattr(sys, "argv", ["verification", "--only", "nothing"])
    assert main() == 2
    assert "no part or topic nothing" in capsys.readouterr().err


def test_the_list_fits_one_screen_and_names_what_to_run_first(monkeypatch, capsys):
    from verification.__main__ import main

    monkeypatch.setattr(sys, "argv", ["verification", "--list"])
    assert main() == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 24
    assert "Run and trust first" in shown
    assert "search-real" in shown
