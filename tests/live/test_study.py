"""A study of two cells on real Keystones."""

import json

import pytest
from click.testing import CliRunner

from loadstone.cli.study import study
from loadstone.lab import deployment
from loadstone.store.store import Store
from loadstone.study import journal

pytestmark = [pytest.mark.live, pytest.mark.timeout(900), pytest.mark.verify]

TINY = """\
title: Two tiny cells
settings: {hash-rounds: 4}
factors: {workers: [1, 2]}
measurement: {scenario: validate, budget_s: 20, users: 2}
pairs_in_turns: 4
compare:
  - {factor: workers, levels: [1, 2]}
"""


@pytest.mark.usefixtures("lab_home")
def test_a_killed_study_of_real_keystones_goes_on_and_leaves_no_deployment(tmp_path, monkeypatch):
    store, file = tmp_path / "store", tmp_path / "tiny.yaml"
    file.write_text(TINY)
    up, started = deployment.up, []

    def killed_the_second_time(*words, **more):
        started.append(words[0])
        if len(started) == 2:
            raise KeyboardInterrupt
        return up(*words, **more)

    monkeypatch.setattr(deployment, "up", killed_the_second_time)
    first = CliRunner().invoke(study, ["run", str(file), "--store", str(store)])
    assert first.exit_code != 0
    assert "1 of 2 measurements are missing" in first.output, first.output
    (study_id,) = journal.ids(store)
    again = ["run", "--resume", study_id, "--store", str(store), "--json", str(tmp_path / "o")]
    # On a busy machine the short budget may end before N is found.
    assert CliRunner().invoke(study, again).exit_code in (0, 4)
    found = json.loads((tmp_path / "o").read_text())
    assert [row["levels"] for row in found["measurements"]] == [{"workers": "1"}, {"workers": "2"}]
    assert [len(row["run_ids"]) for row in found["measurements"]] == [1, 1]
    assert found["missing"] == 0
    assert len(started) == 5  # the cell that was killed once more, and both in turns
    [ratio] = found["differences"]
    assert (ratio["unit"], ratio["ratio"] > 0) == ("pairs in turns", True)
    with Store.open(store) as opened:
        cells = [
            dict(opened.get(r["run_ids"][0]).measurements[0].parameters)
            for r in found["measurements"]
        ]
    assert [one["cell"] for one in cells] == ["workers 1", "workers 2"]
    assert not [one.name for one in deployment.every() if study_id in one.name]
