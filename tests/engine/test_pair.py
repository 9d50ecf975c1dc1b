"""Two loads that take turns, on two services of known capacity."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import numpy as np
import pytest
from known_service import ISSUE, known_service

from loadstone.compare.turns import turns_of
from loadstone.engine import local, parquet
from loadstone.engine.pair import Pair
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Outcome, Samples
from loadstone.errors import InvalidInput
from loadstone.plan.load import ClosedLoad, Load
from loadstone.plan.model import Limits, Origin, Placement, Plan
from loadstone.system.clock import SYSTEM

SIDES = (0.004, 0.002)  # seconds of a request on each side


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    with known_service(2, SIDES[0]) as slow, known_service(2, SIDES[1]) as fast:
        yield slow.url, fast.url


def plan(url: str, load: Load, **more: object) -> Plan:
    where = urlsplit(url)
    origin = Origin("http", str(where.hostname), int(where.port or 0))
    return Plan(origin, (ISSUE,), load, limits=Limits(max_connections=8), **more)  # type: ignore[arg-type]


def go_on(_: Progress) -> bool:
    return True


def pair(urls: tuple[str, str], load: ClosedLoad, folder: Path) -> tuple[Samples, Samples]:
    one, other = (plan(url, load) for url in urls)
    paths = (folder / "a.parquet", folder / "b.parquet")
    local.run_pair((one, other), paths, (go_on, go_on))
    return parquet.read(paths[0]), parquet.read(paths[1])


@pytest.mark.parametrize(("workers", "turn"), [(1, 1), (4, 10)])
def test_each_side_waits_while_the_other_has_its_turn(
    urls: tuple[str, str], tmp_path: Path, workers: int, turn: int
) -> None:
    load = ClosedLoad(workers, duration_s=1.0, turn=turn)
    both = pair(urls, load, tmp_path)
    for samples in both:
        assert (samples.outcome == Outcome.OK).all()
        assert (samples.latency_ns >= 0).all()
        assert sorted(samples.iteration) == list(range(len(samples)))
    a, b = (turns_of(samples, turn) for samples in both)
    assert abs(len(a) - len(b)) <= 1
    assert len(a) > 3
    starts = np.concatenate([a.began_ns, b.began_ns])
    ends = np.concatenate([a.began_ns + a.took_ns, b.began_ns + b.took_ns])
    order = np.argsort(starts)
    assert (starts[order][1:] >= ends[order][:-1]).all()
    count = min(len(a), len(b))
    assert 0 < (a.began_ns[:count] < b.began_ns[:count]).sum() < count


def test_when_one_side_is_ended_the_other_ends(urls: tuple[str, str], tmp_path: Path) -> None:
    load = ClosedLoad(1, duration_s=60.0, turn=1)
    one, other = (plan(url, load) for url in urls)
    looks = []

    def stop_soon(progress: Progress) -> bool:
        looks.append(progress)
        return len(looks) < 3

    paths = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    measured = local.run_pair((one, other), paths, (go_on, stop_soon))
    assert all(one.file.rows > 0 for one in measured)
    assert looks[-1].ok > 0


@pytest.mark.parametrize(
    ("loads", "threads", "message"),
    [
        ((ClosedLoad(1, 1.0), ClosedLoad(1, 1.0)), 1, "load.turn is needed"),
        ((ClosedLoad(1, 1.0, turn=1), ClosedLoad(1, 1.0, turn=2)), 1, "the same for both sides"),
        ((ClosedLoad(2, 1.0, turn=1), ClosedLoad(2, 1.0, turn=1)), 2, "placement.threads"),
    ],
)
def test_loads_that_cannot_take_turns_are_refused(
    urls: tuple[str, str],
    tmp_path: Path,
    loads: tuple[ClosedLoad, ClosedLoad],
    threads: int,
    message: str,
) -> None:
    one, other = (
        plan(url, load, placement=Placement(threads=threads))
        for url, load in zip(urls, loads, strict=True)
    )
    with pytest.raises(InvalidInput, match=message):
        local.run_pair((one, other), (tmp_path / "a", tmp_path / "b"), (go_on, go_on))


class _Engine:
    """Keeps the plans of each pair of loads."""

    clock = SYSTEM

    def __init__(self) -> None:
        self.seeds: list[tuple[int, int]] = []

    def run_pair(self, plans: tuple[Plan, Plan], *_: object) -> tuple[str, str]:
        self.seeds.append((plans[0].seed, plans[1].seed))
        return "of one", "of the other"

    def failure(self) -> None:
        return None


def test_each_pair_of_loads_has_an_order_of_its_own_and_both_sides_the_same_mix() -> None:
    engine = _Engine()
    both = Pair(engine, Random(1))  # type: ignore[arg-type]
    load = ClosedLoad(1, duration_s=1.0, turn=1)
    for _ in range(20):
        both.measure(
            *(
                partial(side.run_to_file, plan("http://localhost:1", load), Path("x"))
                for side in both.sides
            )
        )
    assert all(one == other for one, other in engine.seeds)
    assert len(set(engine.seeds)) == 20
