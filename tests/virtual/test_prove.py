"""`loadstone prove` of simulated labs: the gain of a change, and when there is none."""

from collections.abc import Callable, Mapping
from xml.etree import ElementTree as Xml

import pytest
from binomial import most_failures
from documents import only
from simulator.service import Service
from virtual import Ended, VirtualCommandLine

from loadstone.lab import state
from loadstone.lab.state import DeploymentPhase, DeploymentState

WRONG = 0.05  # share of the intervals that do not cover the true gain
SHORT = ("--seconds=2", "--concurrency=6", "--pairs=12", "--users=0")
SEEDS = range(5)


def by_workers(settings: Mapping[str, str]) -> Service:
    """Return a lab of which each worker serves 20 a second; a cache has no effect."""
    workers = int(settings["workers"])
    return Service(workers=workers, capacity_rps=20.0 * workers)


@pytest.fixture
def prove(loadstone: VirtualCommandLine) -> Callable[..., Ended]:
    """Prove a change of a lab with two workers, which is stopped."""
    folder = loadstone.home / "home" / "lab" / "deployments" / "demo"
    state.write(
        folder, DeploymentState("demo", "r", DeploymentPhase.STOPPED, "boot", (("workers", "2"),))
    )

    def run_it(change: str, *words: str, seed: int = 0) -> Ended:
        given = ("prove", "--lab=demo", f"--set={change}", *SHORT, *words)
        return loadstone(*given, lab=by_workers, seed=seed)

    return run_it


@pytest.mark.parametrize(("workers", "answer"), [(3, "faster"), (1, "slower")])
def test_the_gain_of_a_change_is_found(
    prove: Callable[..., Ended], workers: int, answer: str
) -> None:
    missed = 0
    for seed in SEEDS:
        ended = prove(f"workers={workers}", "--json=-", seed=seed)
        assert ended.code == 0
        found = only(ended.data)["metrics"]["throughput"]
        assert found["answer"] == answer
        missed += not found["low"] <= workers / 2 <= found["high"]
    assert missed <= most_failures(len(SEEDS), WRONG)


def test_a_change_without_effect_is_no_gain(prove: Callable[..., Ended]) -> None:
    for seed in SEEDS:
        ended = prove("cache=memcached", "--same-within=25%", "--json=-", seed=seed)
        found = only(ended.data)["metrics"]["throughput"]
        assert (ended.code, found["answer"]) == (0, "same")


def test_the_paragraph_states_the_change_the_gain_and_how_to_repeat_it(
    loadstone: VirtualCommandLine, prove: Callable[..., Ended]
) -> None:
    ended = prove("workers=3", "--markdown=gain.md", "--junit=gain.xml")
    assert ended.code == 0
    assert "With workers=3, throughput of token issue is 1." in ended.stdout
    assert "To repeat it: loadstone prove --lab=demo --set=workers=3 --seconds=2" in ended.stdout
    suite = Xml.parse(loadstone.home / "gain.xml").getroot()
    assert suite.get("failures") == "0"
    assert "faster" in (loadstone.home / "gain.md").read_text()


def test_what_the_lab_has_already_is_no_change(prove: Callable[..., Ended]) -> None:
    ended = prove("workers=2")
    assert ended.code == 2
    assert "has this already" in ended.stderr
    assert not ended.engine.plans
