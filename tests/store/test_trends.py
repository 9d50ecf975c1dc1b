"""`loadstone results trends`: N over the runs of a target, and what changed where it changed."""

import json
from dataclasses import replace

import pytest
from realistic import keystone

from loadstone.cli import main
from loadstone.search.model import Capacity
from loadstone.store.store import Store

RESULT, _ = keystone()
LEVELS = [50.0, 51.0, 49.5, 50.5, 50.2, 49.8, 44.0, 44.5, 43.6, 44.2]


def facts(workers: str, port: int) -> tuple[tuple[str, str], ...]:
    known = dict(RESULT.environment.target)
    known |= {"workers": workers, "lab": "nightly", "url": f"http://127.0.0.1:{port}/v3"}
    return tuple(known.items())


@pytest.fixture
def trends(tmp_path, monkeypatch, capfd):
    """Run `results trends` over ten nights, in which the workers went from 4 to 3."""
    with Store.open(tmp_path) as store:
        for night, level in enumerate(LEVELS):
            target = facts("4" if night < 6 else "3", 5000 + night)
            of_night = replace(
                RESULT.measurements[0],
                capacity=Capacity(level, 0.98 * level, 1.02 * level, 0.95),
                trials=(),
            )
            store.begin(
                replace(
                    RESULT,
                    run_id=f"202611{night + 1:02}-0300-ab12cd",
                    kind="capacity",
                    started_at=f"2026-11-{night + 1:02}T03:00:00+00:00",
                    environment=replace(RESULT.environment, target=target),
                    measurements=(of_night,),
                )
            )
        # A study's cells differ on purpose and are no history.
        store.begin(replace(RESULT, run_id="20261120-0000-ffffff", kind="study"))

    def run(*words: str) -> str:
        command = ["loadstone", "results", "trends", "--store", str(tmp_path), *words]
        monkeypatch.setattr("sys.argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        shown, told = capfd.readouterr()
        assert ended.value.code == 0, told
        return shown

    return run


def test_a_change_of_n_is_found_with_the_settings_that_changed_there(trends):
    [found] = json.loads(trends("--json", "-"))
    assert (found["kind"], found["target"]) == ("capacity", "lab nightly")
    assert [run["rate_rps"] for run in found["runs"]] == LEVELS
    [change] = found["changes"]
    assert change["before"] == "20261106-0300-ab12cd"
    assert change["after"] == "20261107-0300-ab12cd"
    assert change["low"] < 0.88 < change["high"]
    assert change["settings"] == [{"name": "workers", "before": "4", "after": "3"}]


def test_the_terminal_and_the_page_show_it(trends, tmp_path):
    shown = " ".join(trends().split())
    assert "N fell by 12 % between 20261106-0300-ab12cd and 20261107-0300-ab12cd" in shown
    assert "What differs: workers 4 -> 3." in shown
    assert trends("-o", str(tmp_path / "n.html")).strip() == str(tmp_path / "n.html")
    page = (tmp_path / "n.html").read_text()
    assert "What differs: workers 4 -&gt; 3." in page
    [chart] = json.loads(page.partition('id="charts">')[2].partition("</script>")[0])
    assert chart["title"] == "N over the runs"
    assert [(span["low"], span["high"]) for span in chart["spans"]] == [(6.0, 7.0)]
