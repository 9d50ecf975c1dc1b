"""An engine in virtual time: loads go to simulated services, and no time passes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from loadstone.engine import parquet
from loadstone.engine.health import Health
from loadstone.engine.limits import judged
from loadstone.engine.local import TICK_S, LoadResult, Spilled
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import OnProgress, Progress
from loadstone.engine.samples import Samples
from loadstone.plan.model import Plan
from loadstone.plan.script import Step
from loadstone.system.clock import Clock
from simulator.loads import Played, Sent, SimulatedService
from simulator.time import VirtualTime

if TYPE_CHECKING:
    from loadstone.plan.load import ClosedLoad

HAND_OVER_S = 0.00005  # from the end of a turn to the next
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

    def run_pair(
        self,
        plans: tuple[Plan, Plan],
        paths: tuple[Path, Path],
        on_progress: tuple[OnProgress, OnProgress],
    ) -> tuple[Spilled, Spilled]:
        """Send two plans in turns: each turn is a load of its own."""
        self.plans.extend(plans)
        self.time.sleep(PREPARATION_S)
        start_s, at_s, pair = self.time.now_s, 0.0, 0
        ended_s = [plan.load.duration_s or inf for plan in plans]
        whole = [Played(self._sent(plan)) for plan in plans]
        turns = [_turn(one.sent) for one in whole]
        while at_s < min(ended_s):
            for side in self._order(plans[0].seed, pair):
                service = self.services[plans[side].origin.port]
                run = service.play(turns[side], start_s + at_s, inf, _go_on)
                whole[side].add(run, at_s)
                at_s += run.last_s + HAND_OVER_S
                self.time.pass_to(start_s + at_s)
            pair += 1
            for side, progress in enumerate(on_progress):
                count = len(whole[side].due_s)
                if not progress(Progress(at_s, count, count, count, 0, 0.0)):
                    ended_s[side] = 0.0
        health = [
            self._health(Played(one.sent, done_s=[at_s]), plan)
            for one, plan in zip(whole, plans, strict=True)
        ]
        for path, plan, run in zip(paths, plans, whole, strict=True):
            parquet.write(path, run.samples(self.services[plan.origin.port].refused_with))
        one, other = (
            Spilled(SampleFile(path), found, False)
            for path, found in zip(paths, health, strict=True)
        )
        return one, other

    def _order(self, seed: int, pair: int) -> tuple[int, int]:
        first = int(np.random.default_rng([seed, pair, len(self.plans)]).integers(2))
        return first, 1 - first

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


def _turn(sent: Sent) -> Sent:
    """Return the load of one turn."""
    load = cast("ClosedLoad", sent.load)
    return replace(sent, load=replace(load, duration_s=None, iterations=load.turn or 1, turn=None))


def _go_on(_: float, __: Played) -> bool:
    return True


def _statuses(plan: Plan) -> tuple[int, ...]:
    steps = [step for step in plan.steps if isinstance(step, Step)]
    if plan.mix or len(steps) < len(plan.steps) or any(one.only_if for one in steps):
        raise AssertionError("simulated iterations are requests, one after the other")
    return tuple(step.expect_status[0] for step in steps)


def _rows_of(run: Played, refused_with: int) -> Samples:
    """Return the rows of the iterations that ended since the last call."""
    return run.samples(refused_with, [row for number in run.ended for row in run.rows[number]])
