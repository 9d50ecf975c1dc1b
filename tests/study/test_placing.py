"""Which lab host measures which turn of a study."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from study_files import TWO_BY_TWO, result_of

from loadstone.engine.fleet.address import SchedulerAddress
from loadstone.engine.fleet.client import FleetWorker
from loadstone.errors import InvalidInput
from loadstone.result.model import LAB_HOST
from loadstone.study import placing
from loadstone.study.order import Turn, turns
from loadstone.study.read import StudySource
from loadstone.study.table import TurnOutcome, differences

STUDY = StudySource("mine.yaml", TWO_BY_TWO).study(quick=False)
ORDER = turns(STUDY, 1)


def placed(turn: Turn) -> tuple[int, str]:
    return turn.repeat, dict(turn.cell.levels)["workers"]


def test_turns_that_are_compared_are_one_block() -> None:
    """What is compared is web, in each repeat and for each number of workers."""
    block = placing.blocks(STUDY, ORDER)
    assert len(set(block.values())) == 6
    for one in ORDER:
        for other in ORDER:
            assert (block[one.number] == block[other.number]) == (placed(one) == placed(other))


def test_a_study_that_compares_both_factors_is_one_block_a_repeat() -> None:
    text = TWO_BY_TWO.replace("published:", "  - {factor: workers, levels: [1, 2]}\npublished:")
    block = placing.blocks(StudySource("mine.yaml", text).study(quick=False), ORDER)
    assert {block[one.number] for one in ORDER if one.repeat == 1} == {1}
    assert len(set(block.values())) == 3


def test_without_a_comparison_every_turn_may_go_anywhere() -> None:
    text = TWO_BY_TWO.replace("compare:\n  - {factor: web, levels: [apache, nginx]}\n", "")
    block = placing.blocks(StudySource("mine.yaml", text).study(quick=False), ORDER)
    assert len(set(block.values())) == len(ORDER)


def test_a_free_host_goes_on_with_its_own_blocks_and_takes_no_others() -> None:
    block = placing.blocks(STUDY, ORDER)
    hosts = {block[ORDER[0].number]: "a"}
    later = [one for one in ORDER[1:] if block[one.number] == block[ORDER[0].number]]
    assert placing.next_turn(ORDER[1:], block, hosts, "a") == later[0]
    other = placing.next_turn(ORDER[1:], block, hosts, "b")
    assert other is not None
    assert block[other.number] not in hosts
    assert placing.next_turn(later, block, hosts, "b") is None


def test_a_lab_host_without_a_load_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = SchedulerAddress("tls://127.0.0.1:1", None)
    labs = tuple(FleetWorker(f"tls://lab-{n}:1", f"{n}", frozenset({"lab"})) for n in (1, 2))
    sender = FleetWorker("tls://sender:1", "3", frozenset({"load"}))
    monkeypatch.setattr(placing.client, "opened", lambda _: nullcontext())
    monkeypatch.setattr(placing.client, "lab_hosts", lambda _: labs)
    monkeypatch.setattr(placing.client, "workers", lambda _: (*labs, sender))
    monkeypatch.setattr(placing, "_facts", lambda _: SimpleNamespace(kind="alike"))
    said: list[str] = []
    assert [one.host for one in placing.slots(fleet, said.append)] == ["lab-1"]
    assert said == ["lab host lab-2 is left without a load host; nothing is measured there"]


def test_ratios_are_formed_within_a_host_only() -> None:
    """A block that was resumed on another host gives no ratio."""
    hosts = {"apache": "a", "nginx": "a"}
    outcomes = [outcome(turn, hosts) for turn in ORDER]
    assert [one.ratio.count for one in differences(STUDY, outcomes)] == [3, 3]
    across = [outcome(turn, {"apache": "a", "nginx": "b"}) for turn in ORDER]
    assert differences(STUDY, across) == ()


def outcome(turn: Turn, hosts: dict[str, str]) -> TurnOutcome:
    run = result_of(f"run-{turn.number}", 10.0 + turn.number)
    host = hosts[dict(turn.cell.levels)["web"]]
    environment = replace(run.environment, target=((LAB_HOST, host),))
    return TurnOutcome(turn, replace(run, environment=environment))


def test_hosts_of_the_kind_that_most_are_of_are_used() -> None:
    assert placing.alike({"a": 2, "b": 4, "c": 4}) == ("b", "c")
    assert placing.alike({"a": 2, "b": 4}) == ("a",)


def test_load_hosts_are_divided_among_lab_hosts() -> None:
    assert placing.shared(["a", "b", "c", "d", "e"], 2) == (("a", "c", "e"), ("b", "d"))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (("compute", "nova"), "has a compute cloud"),
        (("service", "keycloak"), "is an OpenID provider, which serves its own machine only"),
        (("tls", "on"), "has tls=on: no other machine has its CA"),
    ],
)
def test_what_lab_hosts_do_not_start_is_refused(setting: tuple[str, str], words: str) -> None:
    for cell in STUDY.cells:
        changed = replace(cell, settings=(*cell.settings, setting))
        with pytest.raises(InvalidInput, match=words):
            placing.require_placeable(replace(STUDY, cells=(changed,)))
    placing.require_placeable(STUDY)
