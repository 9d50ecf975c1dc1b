"""`loadstone compare` against two services of known capacity."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from command_line import CommandLine
from known_service import cloud_of, known_service

from loadstone.store.store import Store

RATIO = 1.3  # capacity of B by that of A
SHORT = ("--seconds=1.5", "--concurrency=6", "--users=2", "--pairs=12")


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
        assert done.returncode in (0, 4), done.stderr
        data = json.loads((home / "out.json").read_text())
        yield Measured(loadstone, done.stdout, data, done.returncode)


def test_the_faster_of_two_services_is_found(measured: Measured) -> None:
    found = measured.data["metrics"]["token issue"]["throughput"]
    assert (measured.exit_code, found["answer"]) == (0, "faster")
    assert found["low"] < RATIO < found["high"] or found["ratio"] == pytest.approx(RATIO, rel=0.05)
    assert measured.data["interleaved"]
    assert "faster: throughput of fast is" in measured.printed


@pytest.mark.slow
def test_a_fleet_loads_both_sides_of_a_comparison(tmp_path: Path) -> None:
    with known_service(2, 0.02 * RATIO) as slow, known_service(2, 0.02) as fast:
        clouds = {"slow": cloud_of(slow.url), "fast": cloud_of(fast.url)}
        (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
        sides = ("--cloud=slow", "--cloud=fast")
        short = ("--seconds=1.5", "--concurrency=6", "--users=2", "--pairs=4")
        done = CommandLine(tmp_path)("compare", *sides, *short, "--fleet=local:2", "--json=o.json")
    assert done.returncode in (0, 4), done.stderr
    data = json.loads((tmp_path / "o.json").read_text())
    assert data["metrics"]["token issue"]["throughput"]["ratio"] > 1
    with Store.open(tmp_path / "results") as store:
        runs = [store.get(run_id) for run_id in data["runs"]]
    for run in runs:
        assert dict(run.environment.machine)["fleet"] == "local:2"
        assert {len(trial.health.parts) for trial in run.measurements[0].trials} == {2}


def test_a_stored_comparison_is_shown_again_in_pairs(measured: Measured) -> None:
    done = measured.loadstone("compare", *measured.runs, "--json=-")
    again = json.loads(done.stdout)
    before = measured.data["metrics"]["token issue"]["throughput"]
    assert again["interleaved"]
    assert again["metrics"]["token issue"]["throughput"] == before


def test_the_guard_passes_the_faster_and_fails_the_slower(measured: Measured) -> None:
    slow, fast = measured.runs
    passed = measured.loadstone("compare", slow, fast, "--fail-if-slower=5%")
    assert (passed.returncode, "guard: not slower" in passed.stdout) == (0, True)
    words = ("compare", f"--baseline={fast}", slow, "--fail-if-slower=5%")
    failed = measured.loadstone(*words, "--junit=guard.xml", "--markdown=guard.md")
    assert (failed.returncode, "guard: slower" in failed.stdout) == (1, True)
    suite = Xml.parse(measured.loadstone.home / "guard.xml").getroot()
    assert suite.get("failures") == "1"
    assert suite.find(".//failure").get("message").startswith("slower: throughput")
    table = (measured.loadstone.home / "guard.md").read_text()
    assert "| throughput |" in table
    assert "guard: slower by more than 5.0 %" in table


@pytest.mark.slow
def test_a_guard_that_cannot_be_judged_says_so(measured: Measured) -> None:
    """Four short pairs with a margin that the difference just has."""
    words = ("compare", "--cloud=slow", "--cloud=slow", "--seconds=1", "--users=0", "--pairs=4")
    done = measured.loadstone(*words, "--fail-if-slower=0.01%", "--json=-")
    outcome = json.loads(done.stdout)["guard"]["outcome"]
    codes = {"not slower": 0, "slower": 1, "undecided": 4}
    assert done.returncode == codes[outcome]


@pytest.mark.slow
def test_runs_of_different_comparisons_are_not_called_paired(measured: Measured) -> None:
    words = ("compare", "--cloud=fast", "--cloud=fast", "--seconds=1", "--users=0", "--pairs=4")
    other = json.loads(measured.loadstone(*words, "--json=-").stdout)["runs"][0]
    done = measured.loadstone("compare", measured.runs[0], other)
    assert done.returncode == 4
    assert "measured at different times" in done.stdout
    assert "unknown" in done.stdout


def test_an_unknown_scenario_is_refused(measured: Measured) -> None:
    words = ("compare", "--cloud=fast", "--cloud=slow", "--users=0", "--scenario=HttpRequests")
    done = measured.loadstone(*words)
    assert done.returncode == 2
    assert "no scenario 'HttpRequests'" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give two runs, or two of one kind"),
        (("--cloud=a",), "a comparison is of two, not of 1"),
        (("--cloud=a", "--cloud=b", "--lab=c"), "give two runs, or two of one kind"),
        (("--cloud=a", "--cloud=b", "--base=workers=1"), "--base means something with"),
        (("--cloud=a", "--cloud=b", "--same-within=x"), "is no share; write it like 3%"),
    ],
)
def test_what_is_no_comparison_is_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = CommandLine(tmp_path)("compare", *words)
    assert done.returncode == 2
    assert message in done.stderr
