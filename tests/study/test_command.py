"""The command itself; what it measures is in test_live.py."""

import json

import pytest
from click.testing import CliRunner
from study_files import TWO_BY_TWO

from loadstone.cli.study import study
from loadstone.errors import InvalidInput
from loadstone.lab.programs import Program
from loadstone.study import journal, read
from loadstone.study.journal import TurnResult
from loadstone.study.read import StudySource


def ask(*words):
    return CliRunner().invoke(study, [str(word) for word in words])


def test_list_names_what_is_built_in_and_what_has_begun(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=3)
    begun.add(TurnResult(1, "20261121-0931-ab12cd", None))
    begun.add(TurnResult(2, None, "no"))
    shown = ask("list", "--store", tmp_path)
    assert shown.exit_code == 0
    for name in read.builtin():
        assert f"{name}: {read.find(name).study(quick=False).title} (about " in shown.output
    assert "(about 5 h 45 min; --quick: 19 min; needs " in shown.output
    assert f"{begun.study_id}  mine  1 of 12 measured" in shown.output


def test_a_damaged_journal_hides_no_other_study(tmp_path):
    source = StudySource("mine.yaml", TWO_BY_TWO)
    good, bad, empty = (journal.begin(tmp_path, source, quick=False, seed=3) for _ in range(3))
    bad.path.write_text("{}\n")
    empty.path.write_text('{"file":')
    shown = ask("list", "--store", tmp_path).output
    assert f"{good.study_id}  mine  0 of 12 measured" in shown
    assert f"{bad.path}:1: not a line of a study's journal" in shown
    assert f"study {empty.study_id} was killed before it began" in shown
    assert journal.find(tmp_path, good.study_id) == good


def test_a_journal_that_is_no_text_names_the_line_and_the_mend(tmp_path):
    source = StudySource("mine.yaml", TWO_BY_TWO)
    good, bad = (journal.begin(tmp_path, source, quick=False, seed=3) for _ in range(2))
    with bad.path.open("ab") as file:
        file.write(b"\xff\xfe\n")
    line = f"{bad.path}:2: not a line of a study's journal: it is not UTF-8; without this line, "
    shown = ask("list", "--store", tmp_path)
    assert shown.exit_code == 0
    assert f"{bad.study_id}  {line}" in shown.output
    assert f"{good.study_id}  mine  0 of 12 measured" in shown.output
    assert str(ask("show", bad.study_id, "--store", tmp_path).exception).startswith(line)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", ""), "no study is named: the name is empty"),
        (("run", ""), "no study is named: the name is empty"),
        (("run", "--resume", ""), "no study is named: the ID is empty"),
        (("show", "x" * 300), "no such study and no such file"),
        (("run", "--resume", "x"), "no study 'x' has begun in "),
        (("run", "--resume", "2"), "study '2' could be 2"),
    ],
)
def test_a_study_that_is_not_named_exactly_is_one_line(tmp_path, words, said):
    if words[-1] in ("", "2"):  # a prefix of all ids
        for _ in range(2):
            source = StudySource("mine.yaml", TWO_BY_TWO)
            journal.begin(tmp_path, source, quick=False, seed=3)
    refused = ask(*words, "--store", tmp_path)
    assert isinstance(refused.exception, InvalidInput)
    assert said in str(refused.exception)
    assert "\n" not in str(refused.exception)


def test_show_gives_cells_order_and_time(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TWO_BY_TWO)
    shown = ask("show", file, "--seed", "3")
    assert shown.exit_code == 0
    assert "4 cells x 3 = 12 capacity searches" in " ".join(shown.output.split())
    assert "12. web" in shown.output
    assert "7 s between them: about 16 min in all" in " ".join(shown.output.split())
    quick = ask("show", file, "--quick")
    assert "Quick form: one worker, once" in quick.output


def test_show_gives_the_table_of_a_study_that_has_begun(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=3)
    begun.add(TurnResult(2, None, "no apache"))
    asked = (begun.study_id[:-1], "--store", tmp_path)
    assert "12 of 12 measurements are missing; go on" in ask("show", *asked).output
    shown = ask("show", *asked, "--markdown")
    assert (shown.exit_code, shown.output[:14]) == (0, "### Two by two")
    assert f"Study {begun.study_id}, seed 3, 0 of 12 measurements." in shown.output
    data = json.loads(ask("show", *asked, "--json", "-").output)
    assert (data["study_id"], data["missing"]) == (begun.study_id, 12)
    told = ask("show", *asked, "--html", tmp_path / "page.html")
    assert (told.exit_code, told.output) == (0, f"{tmp_path / 'page.html'}\n")
    assert "<h1>Two by two</h1>" in (tmp_path / "page.html").read_text()
    assert ask("show", *asked, "--html", "-").output.startswith("<!doctype html>")
    for option in ("--quick", "--seed=7"):
        ignored = ask("show", *asked, option)
        assert (ignored.exit_code, "it began with its own" in ignored.output) == (2, True)
    both = ("--csv", "-", "--json", tmp_path / "study.json")
    assert "measurements" not in ask("show", *asked, *both).output
    assert json.loads((tmp_path / "study.json").read_text())["missing"] == 12
    mixed = ask("show", *asked, "--markdown", "--csv", "-")
    assert (mixed.exit_code, "--markdown prints to stdout" in mixed.output) == (2, True)
    refused = ask("show", "workers", "--markdown")
    assert refused.exit_code == 2
    assert "name a study by its ID" in refused.output


def test_one_form_at_most_goes_to_stdout(tmp_path):
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=3)
    asked = ("show", begun.study_id, "--store", tmp_path)
    only = ask(*asked, "--csv", "-").output
    assert only.startswith("turn,")
    assert ask(*asked, "--csv", "-", "--json", tmp_path / "table.json").output == only
    assert json.loads((tmp_path / "table.json").read_text())["missing"] == 12
    page = tmp_path / "page.html"
    shown = ask(*asked, "--html", page, "--markdown").output
    assert (shown[:14], page.exists()) == ("### Two by two", True)
    refused = ask(*asked, "--json", "-", "--markdown")
    assert (refused.exit_code, "--markdown prints to stdout" in refused.output) == (2, True)


def test_isp_ras_says_in_what_it_differs():
    shown = " ".join(ask("show", "isp-ras-2015", "--quick").output.split())
    assert "13 cells x 1 = 13 capacity searches" in shown
    assert "instead of" in shown
    assert "disk stands for both HDD and SSD" in shown
    assert "711" in shown


def test_a_name_or_an_id_is_needed_and_not_both():
    for words in ((), ("workers", "--resume", "x")):
        refused = ask("run", *words)
        assert refused.exit_code == 2
        assert "give NAME|FILE, or --resume ID" in refused.output


def test_a_bad_file_begins_nothing(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TWO_BY_TWO.replace("repeats: 3", "repeats: 0"))
    refused = ask("run", file, "--store", tmp_path / "store")
    assert isinstance(refused.exception, InvalidInput)
    assert str(refused.exception).startswith(f"{file}:7:")
    assert journal.ids(tmp_path / "store") == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fleet", "http://h"), "--fleet http://h: write local:4"),
        (("--fleet-without-tls",), "--fleet-without-tls needs --fleet"),
        (("--metrics", "192.0.2.1:9"), "other machines reach this address and could read"),
        (("--live", "192.0.2.1:9"), "other machines reach this address, and whoever knows"),
        (("--live-beyond-loopback",), "--live-beyond-loopback needs --live"),
        (("--metrics-beyond-loopback",), "--metrics-beyond-loopback needs --metrics"),
    ],
)
def test_an_option_that_cannot_be_meant_begins_nothing(tmp_path, words, said):
    refused = ask("run", "workers", "--quick", "--store", tmp_path, *words)
    assert refused.exit_code != 0
    assert said in f"{refused.output}{refused.exception}"
    assert journal.ids(tmp_path) == ()


def test_a_dry_run_with_a_fleet_says_where_it_sends_from():
    fleet = ("--fleet", "tcp://127.0.0.1:8786", "--fleet-without-tls")
    shown = ask("run", "workers", "--quick", *fleet, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "tcp://127.0.0.1:8786" in shown.output
    assert "sends from this machine" not in shown.output
    refused = ask("run", "workers", "--quick", "--fleet", "nonsense", "--dry-run")
    assert "--fleet nonsense: write local:4" in f"{refused.output}{refused.exception}"


def test_a_study_without_its_servers_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(Program, "find", lambda _: None)
    refused = ask("run", "sql-per-request", "--quick", "--store", tmp_path)
    assert "not installed: mariadbd" in str(refused.exception)
    assert "Cells of the study" not in refused.output
    assert journal.ids(tmp_path) == ()
