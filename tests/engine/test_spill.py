import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import long_run
import numpy as np
import pytest
from known_service import known_service, seen_by
from loopback import OK, Serve, answering

from loadstone.engine import parquet
from loadstone.engine.local import run_to_file
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Outcome, Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Placement
from verification.engine.target import counting_target


def command(port: int, path: Path, iterations: int) -> list[str]:
    return [sys.executable, long_run.__file__, str(port), str(path), str(iterations)]


@pytest.mark.verify
def test_memory_does_not_grow_with_the_number_of_requests_and_none_is_lost(
    tmp_path: Path,
) -> None:
    peaks_mb = []
    for iterations in (400_000, 900_000):
        path = tmp_path / f"{iterations}.parquet"
        with counting_target() as target:
            ended = subprocess.run(
                command(target.port, path, iterations), check=True, capture_output=True
            )
            told = json.loads(ended.stdout)
            assert (told["recorded"], target.end()) == (iterations, iterations)
        peaks_mb.append(told["peak_rss_mb"])
    # In memory the difference alone would take 19 MB.
    assert peaks_mb[1] - peaks_mb[0] < 8
    assert peaks_mb[1] < 300


def test_a_killed_run_leaves_what_it_had_written(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with known_service(8, 1e-5) as known:
        with subprocess.Popen(command(known.port, path, 10**9)) as running:
            while not list(tmp_path.glob("*.parts/000001.parquet")):
                assert running.poll() is None
                time.sleep(0.05)
            running.kill()
        answered = seen_by(known)["worked"]
    left = SampleFile(path)
    groups = list(left.groups())
    rows = sum(len(group) for group in groups)
    assert not path.exists()
    assert 0 < rows == left.rows <= answered
    iterations = np.concatenate([group.iteration for group in groups])
    assert len(np.unique(iterations)) == rows
    assert all((group.outcome == Outcome.OK).all() for group in groups)


def test_the_file_holds_what_memory_would_have_held(tmp_path: Path, serve: Serve) -> None:
    path = tmp_path / "run.parquet"
    plan = serve(answering(OK)).plan(OpenLoad(1000, 0.5))
    measured = run_to_file(plan, path)
    assert measured.file == SampleFile(path)
    assert measured.health.connections > 0
    assert not measured.interrupted
    samples = parquet.read(path)
    assert sorted(samples.iteration.tolist()) == list(range(500))
    assert (np.diff(samples.done_ns) >= 0).all()
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_that_is_stopped_completes_its_file(tmp_path: Path, serve: Serve) -> None:
    path = tmp_path / "run.parquet"
    plan = serve(answering(OK)).plan(ClosedLoad(2, duration_s=60))
    measured = run_to_file(plan, path, lambda progress: progress.ok < 100)
    assert measured.file.rows >= 100
    assert list(tmp_path.iterdir()) == [path]


def test_each_iteration_is_shown_once_whole_when_it_has_ended(tmp_path: Path, serve: Serve) -> None:
    shown: list[Samples] = []
    plan = serve(answering(OK)).plan(OpenLoad(1000, 0.7))
    (first,) = plan.steps
    plan = replace(
        plan,
        steps=(first, replace(first, action="again")),
        placement=replace(plan.placement, threads=2),
    )
    run_to_file(plan, tmp_path / "run.parquet", None, shown.append)
    rows = Samples.joined(shown)
    assert len(shown) > 2
    assert all(
        (np.unique(some.iteration, return_counts=True)[1] == 2).all() for some in shown if len(some)
    )
    assert len(np.unique(rows.iteration)) * 2 == len(rows)
    # What ended after the last look is in the file alone.
    assert 200 < len(rows) <= 1400


def test_rows_of_several_threads_are_in_the_order_of_completion(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(answering(OK))
    plan = server.plan(ClosedLoad(4, iterations=1000))
    threaded = type(plan)(plan.origin, plan.steps, plan.load, placement=Placement(threads=2))
    (group,) = run_to_file(threaded, tmp_path / "run.parquet").file.groups()
    assert sorted(group.iteration.tolist()) == list(range(1000))
    assert (np.diff(group.done_ns) >= 0).all()


def test_what_an_earlier_run_left_is_not_overwritten(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "run.parquet.parts").mkdir()
    plan = serve(answering(OK)).plan(ClosedLoad(1, iterations=1))
    with pytest.raises(EnvironmentUnusable, match=r"run\.parquet\.parts: cannot be made"):
        run_to_file(plan, tmp_path / "run.parquet")


def test_a_folder_that_does_not_exist_is_told_before_anything_is_sent(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(answering(OK))
    with pytest.raises(EnvironmentUnusable, match="No such file or directory"):
        run_to_file(server.plan(ClosedLoad(1, iterations=1)), tmp_path / "none" / "run.parquet")
    assert not server.accepted
