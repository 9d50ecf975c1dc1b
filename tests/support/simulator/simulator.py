"""Measures a simulated service as a search asks for it, without a run around it."""

from dataclasses import replace
from math import inf

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import TICK_S, Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine.health import Health
from loadstone.search.model import TrialRequest
from simulator.loads import Sent, SimulatedService
from simulator.service import Service

PAUSE_S = 0.2  # between two trials
HEALTH = Health(0.0, 0.0, 0.0, cpu_s=0.0, wall_s=0.0, runqueue_wait_s=0.0, threads=1)


class Simulator:
    """A service and its clock; `measure` is what a search is given."""

    def __init__(self, service: Service, seed: int, goal: Goal | None = None) -> None:
        self._simulated = SimulatedService(service, seed)
        self._goal = goal or Goal()
        self._trials = 0
        self.now_s = 0.0
        self.load_s = 0.0

    @property
    def slower(self) -> float:
        """The present factor of the service times, as a mean over requests."""
        return self._simulated.slower(self.now_s)

    @property
    def session_rps(self) -> float:
        """The capacity that the noise left so far."""
        service = self._simulated.service
        stalled = service.stalls.share if service.stalls else 0.0
        share = self._simulated.speed.to_work(self.now_s) / self.now_s if self.now_s else 1.0
        return service.capacity_rps * share / (1 - stalled)

    def measure(self, ask: TrialRequest) -> Trial:
        """Run one trial on the virtual clock; outstanding requests are waited for."""
        self._trials += 1
        self.now_s += ask.pause_s
        tolerates = ask.tolerates_errors
        left = ask.time_left
        watch = alarm(
            ask.load,
            ask.alarm_s,
            self._goal,
            ask.settle_s,
            tolerates_errors=tolerates,
            time_left=left,
        )
        drain_s = inf if left is None else max(0.0, left.most_s - (ask.load.duration_s or 0.0))
        sent = Sent(ask.load, max_connections=ask.max_connections or inf, drain_s=drain_s)
        self._simulated.use_share_of_users(ask.users_share)
        run = self._simulated.play(
            sent, self.now_s, TICK_S, lambda at_s, so_far: watch(so_far.progress(at_s))
        )
        self.load_s += run.end_s
        self.now_s += max(run.end_s, run.last_s) + PAUSE_S
        samples = run.samples(self._simulated.refused_with)
        health = replace(HEALTH, wall_s=run.last_s)
        spec = replace(ask.spec(self._trials), alarmed=watch.cause)
        return assess(spec, samples, health, self._goal)
