"""An engine in virtual time: loads go to simulated services, and no time passes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from loadstone.engine import parquet
from loadstone.engine.health import Health
from loadstone.engine.limits import judged
from loadstone.engine.local import TICK_S, LoadResult, Spilled
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import OnProgress
from loadstone.engine.samples import Samples
from loadstone.plan.model import Plan
from loadstone.plan.script import Step
from loadstone.system.clock import Clock
from simulator.loads import Played, Sent, SimulatedService
from simulator.time import VirtualTime

PREPARATION_S = 0.05  # of a load


@dataclass(frozen=True, slots=True)
class VirtualEngine:
    """`gate.Engine` on simulated services, which are found by the port of a plan."""

    services: Mapping[int, SimulatedService]
    time: VirtualTime
    lag_s: float = 0.0  # a generator on a busy machine: each send is late by this
    plans: list[Plan] = field(default_factory=list)  # that were sent

    @property
    def clock(self) -> Clock:
        """The clock in which services answer."""
        return self.time.clock

    def failure(self) -> str | None:
        """Return None: this engine cannot be lost."""
        return None

    def run(self, plan: Plan, on_progress: OnProgress | None = None) -> LoadResult:
        """Send a plan; samples are kept in memory."""
        service = self.services[plan.origin.port]
        run = self._play(service, plan, on_progress, None)
        return LoadResult(run.samples(service.refused_with), self._health(run, plan), False)

    def run_to_file(
        self,
        plan: Plan,
        path: Path,
        on_progress: OnProgress | None = None,
        on_samples: Callable[[Samples], None] | None = None,
    ) -> Spilled:
        """Send a plan; samples go to a file."""
        service = self.services[plan.origin.port]
        run = self._play(service, plan, on_progress, on_samples)
        parquet.write(path, run.samples(service.refused_with))
        return Spilled(SampleFile(path), self._health(run, plan), False)

    def _play(
        self,
        service: SimulatedService,
        plan: Plan,
        on_progress: OnProgress | None,
        on_samples: Callable[[Samples], None] | None,
    ) -> Played:
        self.plans.append(plan)
        self.time.sleep(PREPARATION_S)
        start_s = self.time.now_s

        def goes_on(at_s: float, run: Played) -> bool:
            self.time.pass_to(start_s + at_s)
            if on_samples is not None:
                on_samples(_rows_of(run, service.refused_with))
            progress = run.progress(at_s)
            run.ended.clear()
            run.latency_s = 0.0
            return on_progress is None or on_progress(progress)

        run = service.play(self._sent(plan), start_s, TICK_S, goes_on)
        goes_on(max(run.end_s, run.last_s), run)
        return run

    def _sent(self, plan: Plan) -> Sent:
        limits = plan.limits
        return Sent(
            load=plan.load,
            statuses=_statuses(plan),
            max_connections=limits.max_connections,
            max_rate_rps=limits.max_rate_rps or inf,
            load_s=limits.load_s or inf,
            request_timeout_s=limits.request_timeout_s,
            drain_s=limits.drain_s,
            lag_s=self.lag_s,
        )

    def _health(self, run: Played, plan: Plan) -> Health:
        lag_ms = 1000 * self.lag_s
        health = Health(
            lag_ms,
            lag_ms,
            lag_ms,
            cpu_s=0.0,
            wall_s=run.last_s,
            runqueue_wait_s=0.0,
            threads=1,
            throttled=run.throttled,
            throttled_s=run.throttled_s,
            is_cut_short=run.is_cut_short,
        )
        return judged(health, plan.load, plan.limits.max_rate_rps)


def _statuses(plan: Plan) -> tuple[int, ...]:
    steps = [step for step in plan.steps if isinstance(step, Step)]
    if plan.mix or len(steps) < len(plan.steps) or any(one.only_if for one in steps):
        raise AssertionError("simulated iterations are requests, one after the other")
    return tuple(step.expect_status[0] for step in steps)


def _rows_of(run: Played, refused_with: int) -> Samples:
    """Return the rows of the iterations that ended since the last call."""
    return run.samples(refused_with, [row for number in run.ended for row in run.rows[number]])
