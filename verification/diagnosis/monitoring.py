"""What it costs to watch a service, and how true its demands are.

    python -m verification.diagnosis.monitoring

Logs in at a lab Keystone in a closed loop that fills its workers, in pairs in random order: with
readings once a second, and without. Prints the ratio of their throughputs, the CPU that the
readings took, and, where control groups can be made (root, cgroup v1 or v2), the CPU of a login
beside what the kernel counted for the lab's control group over the same logins.
"""

import argparse
import contextlib
import math
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loadstone.engine.progress import Progress
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings
from loadstone.monitor.roles import Role
from loadstone.monitor.service import ServiceProcess
from loadstone.result.observer import Display
from loadstone.run.flow import run_on
from loadstone.store.store import Store
from loadstone.study.cell import steps_groups
from loadstone.study.model import ClosedLoopStep, Figure, StepsMeasurement
from loadstone.system.redaction import Redaction
from loadstone.target.choice import NamedTarget
from loadstone.target.connect import connected_lab
from loadstone.target.watch import watching
from loadstone.workload.model import RunConfig

SETTINGS = ("workers=2", "hash-rounds=10", "database=mariadb", "cache=memcached")
V1 = Path("/sys/fs/cgroup/cpuacct")
V2 = Path("/sys/fs/cgroup")


class Silent(Display):
    """Shows nothing."""

    def say(self, line: str) -> None:
        pass

    def begin(self, load_s: float) -> None:
        pass

    def hide(self, redaction: Redaction) -> None:
        pass

    def on_progress(self, progress: Progress) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class Account:
    """A control group in which the kernel counts CPU time."""

    folder: Path

    def add(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(pid))

    def spent_s(self) -> float:
        if (usage := self.folder / "cpuacct.usage").exists():
            return int(usage.read_text()) / 1e9
        words = (self.folder / "cpu.stat").read_text().split()
        return int(words[words.index("usage_usec") + 1]) / 1e6


@contextlib.contextmanager
def account() -> Iterator[Account | None]:
    """Make a control group; None where that is not possible."""
    root = V1 if V1.is_dir() else V2
    folder = root / f"verify-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as problem:
        print(f"no control group: {problem}", file=sys.stderr)
        yield None
        return
    yield Account(folder)
    Account(root).add(os.getpid())
    with contextlib.suppress(OSError):  # its processes have ended
        folder.rmdir()


@dataclass(frozen=True, slots=True)
class Seen:
    """One stretch of load."""

    rate_rps: float
    monitor_cores: float | None = None  # None: nothing was read
    demand_ms: float | None = None
    kernel_ms: float | None = None


def loaded(lab: Deployment, logins: int, counted: Account | None, *, is_watched: bool) -> Seen:
    """Log in so often, and return what was seen."""
    spent_s: list[float] = []
    step = ClosedLoopStep("logins", "issue", 2, logins, timed=True, at_most_s=300.0)
    [steps] = steps_groups(StepsMeasurement(Figure.RATE, 0, (step,)))
    group = replace(steps, most_existing=0)
    config = RunConfig("study", NamedTarget(), (group,), "verify")
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(
            Store.open(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        )
        target = stack.enter_context(connected_lab(lab, lambda _: None))
        watch = stack.enter_context(watching(lab, lambda _: None)) if is_watched else None

        def members() -> tuple[ServiceProcess, ...]:
            # Asked at the begin and at the end of the load, at least.
            spent_s.append(counted.spent_s() if counted else math.nan)
            return lab.identity_members()

        target = replace(target, members=members, watch=watch)
        (measurement,) = run_on(target, config, store, Silent()).measurements
        trial = measurement.trials[-1]
    seen = Seen(trial.stats.throughput_rps)
    if watch is None or trial.resources is None:
        return seen
    metrics = watch.monitor.metrics()
    uses = trial.resources.observation.uses
    roles = [role.value for role in Role if role is not Role.GENERATOR]
    demand_s = sum(u.demand_s or 0.0 for u in uses if u.unit == "cores" and u.role in roles)
    read_s = metrics.increase("monitor", "cpu_seconds_total") or 0.0
    kernel_s = (spent_s[-1] - spent_s[0]) / trial.stats.total.count
    return replace(
        seen,
        monitor_cores=read_s / max(metrics.duration_s, 1e-9),
        demand_ms=demand_s * 1000,
        kernel_ms=kernel_s * 1000,
    )


def main() -> None:
    from scipy import stats

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--logins", type=int, default=250, help="of each stretch")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, name = random.Random(options.seed), f"verify-{os.getpid()}"
    with account() as counted:
        if counted:
            counted.add(os.getpid())  # what is started now belongs to it
        lab = deployment.up(
            name, settings.read(map(settings.split, SETTINGS)), lambda _: None, owned=True
        )
        if counted:
            Account(counted.folder.parent).add(os.getpid())
        try:
            loaded(lab, options.logins, counted, is_watched=False)  # warms up
            logs, watched = [], []
            for number in range(options.pairs):
                pair = {}
                for is_watched in chance.sample((True, False), 2):
                    pair[is_watched] = loaded(lab, options.logins, counted, is_watched=is_watched)
                logs.append(math.log(pair[True].rate_rps / pair[False].rate_rps))
                watched.append(pair[True])
                print(number + 1, pair[True], pair[False].rate_rps, file=sys.stderr, flush=True)
        finally:
            deployment.down(name, purge=True)
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    half = stats.t.ppf(0.975, len(logs) - 1) * error
    low, high = math.exp(mean - half), math.exp(mean + half)
    print(f"throughput with readings / without: {math.exp(mean):.4f} ({low:.4f} to {high:.4f})")
    cores = statistics.median(one.monitor_cores or 0.0 for one in watched)
    print(f"the readings took {cores:.2%} of a core (median)")
    ratios = [(one.demand_ms or 0.0) / (one.kernel_ms or math.nan) for one in watched]
    print(
        f"CPU of a login, readings / kernel's account: {statistics.median(ratios):.3f} "
        f"({min(ratios):.3f} to {max(ratios):.3f}); "
        f"{statistics.median(one.demand_ms or 0.0 for one in watched):.1f} ms"
    )


if __name__ == "__main__":
    main()
