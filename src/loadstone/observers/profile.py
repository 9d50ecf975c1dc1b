"""Profiles the service's workers during a trial with py-spy."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.analysis.model import Trial
from loadstone.diagnosis.cpu_profile import CpuProfile, busy, flame, folded, parts, read_folded
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.monitor.roles import Role, role_of
from loadstone.monitor.service import Members
from loadstone.result.observer import TrialObserver
from loadstone.search.model import TrialRequest
from loadstone.system.installation import pip_install
from loadstone.system.say import Say

RATE_HZ = 50
MOST_WORKERS = 4  # each has its own profiler, which takes 5 to 10 % of a core
MOST_S = 120.0
PATIENCE_S = 15.0  # for a profiler to write its result


def require_profiler(members: Members) -> None:
    """Raise InvalidInput for a service elsewhere, EnvironmentUnusable without py-spy."""
    if members() is None:
        raise InvalidInput(
            "--profile needs the service's processes on this machine; choose a deployment with "
            "--lab NAME"
        )
    program()


def program() -> str:
    """Return the path of py-spy; EnvironmentUnusable says how to install it."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("py-spy", path=beside) or shutil.which("py-spy")
    if found is None:
        raise EnvironmentUnusable(
            f"--profile needs py-spy, which is not installed: {pip_install('py-spy')}"
        )
    return found


@dataclass(slots=True)
class _Profiler:
    """A py-spy process that profiles one worker."""

    process: subprocess.Popen[bytes]
    file: Path
    cpu_s: float = 0.0


@dataclass(slots=True)
class WorkerProfile(TrialObserver):
    """Profiles workers during the load of the trials with the given purpose.

    A failing profiler never fails the run: the reason is reported in one line.
    """

    members: Members
    keep: Callable[[int, str], str]  # stores folded stacks of a trial; returns the file's name
    say: Say
    purpose: str | None = None  # of the trials that are profiled; None: all
    threads: int | None = None  # of each worker that serve requests; None: unknown
    most: int | None = MOST_WORKERS  # workers that are profiled; None: all, for times per request
    _folder: "tempfile.TemporaryDirectory[str] | None" = field(default=None, init=False)
    _profilers: list[_Profiler] = field(default_factory=list, init=False)
    _began_s: float = field(default=0.0, init=False)
    _seconds: float = field(default=0.0, init=False)

    def on_trial_begin(self, request: TrialRequest) -> None:
        """Start a profiler for each worker."""
        if self.purpose is not None and request.purpose != self.purpose:
            return
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="loadstone-profile-")
            for pid in tuple(workers(self.members))[: self.most]:
                file = Path(self._folder.name) / f"{pid}.folded"
                self._profilers.append(_Profiler(_started(pid, file), file))
        except (OSError, EnvironmentUnusable) as problem:  # a full disk; py-spy was removed
            self.say(f"  no profile: {getattr(problem, 'strerror', None) or problem}")
            self.close()
        else:
            if not self._profilers:
                self.say("  no profile: no worker was found")
        self._began_s = time.monotonic()

    def on_load_end(self, samples: Samples | SampleFile) -> None:  # noqa: ARG002
        """Stop the profilers, which then write their results."""
        self._seconds = min(time.monotonic() - self._began_s, MOST_S)
        for one in self._profilers:
            one.cpu_s = _cpu_s(one.process)
            with suppress(ProcessLookupError):
                one.process.send_signal(signal.SIGINT)

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add the profile."""
        if not self._profilers:
            return trial
        texts, problems = [], []
        for one in self._profilers:
            error = _ended(one.process)
            if one.file.exists():
                texts.append(one.file.read_text("utf-8", errors="replace"))
            else:
                problems.append(error)
        cpu_s = sum(one.cpu_s for one in self._profilers)
        self._profilers = []
        stacks = busy(read_folded(texts))
        if not stacks:
            why = problems[0] if problems else "saw no worker with a request"
            self.say(f"  no profile: py-spy: {why}")
            return trial
        return replace(trial, profile=self._profile(trial.number, stacks, len(texts), cpu_s))

    def close(self) -> None:
        """Terminate the profilers that still run."""
        for one in self._profilers:
            one.process.kill()
            one.process.wait()
        self._profilers = []
        if self._folder is not None:
            self._folder.cleanup()

    def _profile(
        self, number: int, stacks: dict[tuple[str, ...], int], workers: int, cpu_s: float
    ) -> CpuProfile:
        return CpuProfile(
            seconds=self._seconds,
            rate_hz=RATE_HZ,
            workers=workers,
            samples=sum(stacks.values()),
            parts=parts(stacks),
            flame=flame(stacks),
            profiler_cpu_s=cpu_s,
            file=self.keep(number, folded(stacks)),
            threads=self.threads,
        )


def workers(members: Members) -> Iterator[int]:
    """Yield the processes of Keystone that have no child processes of it."""
    import psutil

    parents: dict[int, int] = {}
    for one in members() or ():
        with suppress(psutil.Error):
            process = psutil.Process(one.pid)
            command = (process.cmdline() or [""])[0]
            if role_of(one.part, command) is Role.KEYSTONE:
                parents[one.pid] = process.ppid()
    above = set(parents.values())
    yield from (pid for pid in parents if pid not in above)


def _started(pid: int, file: Path) -> subprocess.Popen[bytes]:
    command = [program(), "record", "--pid", str(pid), "--format", "raw", "--output", str(file)]
    command += ["--rate", str(RATE_HZ), "--duration", str(int(MOST_S))]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _ended(process: subprocess.Popen[bytes]) -> str:
    """Wait for a profiler; return its error message, or its exit code."""
    try:
        _, stderr = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it did not end"
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("Error")), f"code {process.returncode}")


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    import psutil

    with suppress(psutil.Error):
        times = psutil.Process(process.pid).cpu_times()
        return times.user + times.system
    return 0.0
