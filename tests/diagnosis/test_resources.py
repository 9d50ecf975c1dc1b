"""What a trial keeps of the readings that were made during its load."""

from dataclasses import dataclass, field

import pytest

from loadstone.diagnosis.demand import BottleneckKind, Setup
from loadstone.diagnosis.resources import Watch, timelines, without_rates
from loadstone.monitor.metrics import Reading, Recorder
from loadstone.monitor.sampler import Monitor


@dataclass
class Counter:
    """A role whose CPU time is what the test says."""

    cpu_s: float = 0.0
    name: str = "keystone"
    is_remote: bool = False
    reads: list = field(default_factory=list)

    def read(self):
        yield Reading("keystone", "cpu_seconds_total", self.cpu_s, "s")
        yield Reading("keystone", "cores_allowed", 2)

    def close(self):
        pass


def resources_of(monitor, since_s, requests, setup):
    metrics = monitor.metrics(since_s)
    return Watch(monitor, setup).resources(
        metrics, requests, None, is_generator_valid=True, is_overloaded=False
    )


def test_only_what_the_load_itself_used_counts():
    source = Counter(5.0)  # before
    with Monitor([source], every_s=1000) as monitor:
        since_s = monitor.sample()
        source.cpu_s += 3.0
        monitor.sample()
        resources = resources_of(monitor, since_s, 30, Setup(workers=2, threads=1))
    use = resources.observation.use(BottleneckKind.CPU, "keystone")
    assert use.demand_s == pytest.approx(0.1)
    assert resources.not_watched == ()


def test_a_second_trial_begins_anew():
    source = Counter()
    with Monitor([source], every_s=1000) as monitor:
        for cpu_s in (1.0, 4.0):
            since_s = monitor.sample()
            source.cpu_s += cpu_s
            monitor.sample()
            observation = resources_of(monitor, since_s, 100, Setup()).observation
            use = observation.use(BottleneckKind.CPU, "keystone")
            assert use.demand_s == pytest.approx(cpu_s / 100)


def test_a_timeline_follows_the_load():
    from loadstone.diagnosis.demand import observe

    recorder, cpu_s = Recorder(), 0.0
    for second in range(21):
        cpu_s += 0.2 if second <= 10 else 1.8  # idle, then busy
        rows = [Reading("keystone", "cpu_seconds_total", cpu_s, "s")]
        recorder.add(1000.0 + second, [*rows, Reading("keystone", "cores_allowed", 2)])
    metrics = recorder.metrics()
    (timeline,) = timelines(metrics, observe(metrics, 100), Setup())
    early = [share for at_s, share in timeline.points if at_s < 9]
    late = [share for at_s, share in timeline.points if at_s > 12]
    assert early == pytest.approx([0.1] * len(early), abs=0.01)
    assert late == pytest.approx([0.9] * len(late), abs=0.01)


def test_a_machine_whose_counters_were_read_once_is_said_to_be_unknown():
    recorder = Recorder()
    for second in range(0, 20, 5):
        rows = [Reading("machine@node:9100", "memory_total_bytes", 1.0)]
        if second in (5, 15):
            rows.append(Reading("machine@node:9100/cpu0", "cpu_busy_seconds_total", 1.0 * second))
        recorder.add(1000.0 + second, rows)
    metrics = recorder.metrics()
    assert list(without_rates(metrics)) == []
    (said,) = without_rates(metrics.between(1000.0, 1014.0))
    assert said.startswith("how busy node:9100 was is not known")
