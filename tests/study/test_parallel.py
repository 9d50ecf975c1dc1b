"""A study on several lab hosts, with processes that answer at once."""

from multiprocessing import Pipe

import pytest
from study_files import TWO_BY_TWO

from loadstone.engine.fleet.address import SchedulerAddress
from loadstone.lab.remote_lab import LabPlace
from loadstone.study import journal, parallel
from loadstone.study.journal import TurnResult
from loadstone.study.parallel import ParallelStudy
from loadstone.study.placing import LabSlot
from loadstone.study.read import StudySource

pytestmark = pytest.mark.pure
FLEET = SchedulerAddress("tls://127.0.0.1:1", None)


class Ended:
    """A process that has sent a line and the result of its turn when it starts."""

    pid = None
    Pipe = staticmethod(Pipe)

    def __init__(self, target, args):  # noqa: ARG002
        self.order, self.pipe = args

    @classmethod
    def Process(cls, **given):  # noqa: N802
        return cls(**given)

    def start(self):
        self.pipe.send("measured")
        run_id = f"20261121-0931-{self.order.number:06x}"
        self.pipe.send(TurnResult(self.order.number, run_id, None, host=self.order.slot.host))

    def join(self, _timeout_s=None):
        pass

    def kill(self):
        pass


def test_an_interrupt_keeps_the_results_that_were_not_read_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "get_context", lambda _kind: Ended)
    begun = journal.begin(tmp_path, StudySource("mine.yaml", TWO_BY_TWO), quick=False, seed=3)

    lines = []

    def say(line):
        lines.append(line)
        if sum(one.endswith("measured") for one in lines) == 1:
            raise KeyboardInterrupt

    slots = tuple(LabSlot(LabPlace(FLEET, host), FLEET) for host in "ab")
    with pytest.raises(KeyboardInterrupt):
        ParallelStudy(begun, slots, "loadstone study run", False, say).carry_out()
    assert [one.host for _, one in sorted(begun.ended().items())] == ["a", "b"]
