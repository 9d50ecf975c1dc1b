"""How long a task's iterations may take after the last one was due."""

from pathlib import Path

import pytest

from loadstone.engine.callables.model import DRAIN_S, Function
from loadstone.errors import InvalidInput
from loadstone.rally.task.read import read
from loadstone.workload.functions import Calls
from loadstone.workload.requests import Requests
from loadstone.workload.task import TaskTerms, task_groups


@pytest.mark.parametrize(("timeout_s", "drain_s"), [(None, DRAIN_S), (5, DRAIN_S), (3600, 3600)])
def test_the_last_iteration_may_take_its_whole_time_out(
    timeout_s: float | None, drain_s: float
) -> None:
    calls = Calls("mine", "", Function("a", "scenario"), timeout_s=timeout_s)
    assert calls.drain_s == drain_s


def test_more_starts_than_can_be_computed_are_refused(tmp_path: Path) -> None:
    runner = "{type: rps, times: 4000000000, rps: 500}"
    (tmp_path / "task.yaml").write_text(f"Authenticate.keystone: [{{runner: {runner}}}]")
    task = read(str(tmp_path / "task.yaml")).task
    with pytest.raises(InvalidInput, match="10,000,000 at most; times is 4,000,000,000"):
        task_groups(task, TaskTerms(paces_as_rally=True))


@pytest.mark.parametrize(("timeout", "timeout_s"), [("", 180.0), (", timeout: 5", 5.0)])
def test_iterations_that_wait_for_others_run_after_the_last_one_was_due(
    tmp_path: Path, timeout: str, timeout_s: float
) -> None:
    """At 3 at a time, a thousand take longer than they are due, and than one may take."""
    runner = f"{{type: rps, times: 1000, rps: 50, max_concurrency: 3{timeout}}}"
    (tmp_path / "task.yaml").write_text(f"Authenticate.keystone: [{{runner: {runner}}}]")
    (group,) = task_groups(read(str(tmp_path / "task.yaml")).task, TaskTerms())
    generator = group.measurements[0].generator
    assert isinstance(generator, Requests)
    assert generator.limits.request_timeout_s == timeout_s
    assert generator.limits.drain_s >= 1000 * timeout_s / 3
    assert generator.limits.stopped_drain_s == timeout_s
