"""`loadstone compare` against two services of known capacity."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from documents import only
from known_service import cloud_of, known_service

from loadstone.store.store import Store

RATIO = 1.3  # capacity of B by that of A
SHORT = ("--seconds=1", "--concurrency=6", "--users=2", "--pairs=4")


@dataclass(frozen=True)
class Measured:
    """A comparison that was measured, and the command line that knows its store."""

    loadstone: CommandLine
    printed: str
    data: dict[str, Any]
    exit_code: int

    @property
    def runs(self) -> tuple[str, str]:
        a, b = self.data["runs"]
        return a, b


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    home = tmp_path_factory.mktemp("compare")
    loadstone = CommandLine(home)
    with known_service(2, 0.02 * RATIO) as slow, known_service(2, 0.02) as fast:
        clouds = {"slow": cloud_of(slow.url), "fast": cloud_of(fast.url)}
        (home / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
        words = ("compare", "--cloud=slow", "--cloud=fast", *SHORT, "--json=out.json")
        done = loadstone(*words)
        data = json.loads((home / "out.json").read_text())
        yield Measured(loadstone, done.stdout, data, done.returncode)


@pytest.mark.verify
def test_a_fleet_loads_both_sides_of_a_comparison(tmp_path: Path) -> None:
    with known_service(2, 0.02 * RATIO) as slow, known_service(2, 0.02) as fast:
        clouds = {"slow": cloud_of(slow.url), "fast": cloud_of(fast.url)}
        (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
        sides = ("--cloud=slow", "--cloud=fast")
        short = ("--seconds=1.5", "--concurrency=6", "--users=2", "--pairs=4")
        done = CommandLine(tmp_path)("compare", *sides, *short, "--fleet=local:2", "--json=o.json")
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "o.json").read_text())
    assert only(data)["metrics"]["throughput"]["ratio"] > 1
    with Store.open(tmp_path / "results") as store:
        runs = [store.get(run_id) for run_id in data["runs"]]
    for run in runs:
        assert dict(run.environment.machine)["fleet"] == "local:2"
        assert {len(trial.health.parts) for trial in run.measurements[0].trials} == {2}


def test_a_comparison_keeps_both_runs_and_says_so(measured: Measured) -> None:
    # In four short pairs on a busy machine there may be no answer.
    assert measured.exit_code in (0, 4), measured.printed
    assert measured.data["interleaved"]
    assert only(measured.data)["title"] == "token issue"
    shown = measured.loadstone("results", "show", measured.runs[0], "--json=-")
    assert json.loads(shown.stdout)["run_id"] == measured.runs[0]


def test_an_unknown_scenario_is_refused(measured: Measured) -> None:
    words = ("compare", "--cloud=fast", "--cloud=slow", "--users=0", "--scenario=HttpRequests")
    done = measured.loadstone(*words)
    assert done.returncode == 2
    assert "no scenario 'HttpRequests'" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give two runs, or two or more of one kind"),
        (("--cloud=a",), "a comparison is of two or more, not of 1"),
        (("--cloud=a", "--cloud=b", "--lab=c"), "give two runs, or two or more of one kind"),
        (("--cloud=a", "--cloud=b", "--base=workers=1"), "--base means something with"),
        (
            ("--cloud=a", "--cloud=b", "--pairs=4", "--pairs-at-least=10", "--dry-run"),
            "--pairs-at-least 10 is more than --pairs 4",
        ),
        (("--cloud=a", "--cloud=b", "--same-within=x"), "is not a share; write it like 3%"),
    ],
)
def test_what_is_no_comparison_is_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = CommandLine(tmp_path)("compare", *words)
    assert done.returncode == 2
    assert message in done.stderr
