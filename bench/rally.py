"""`loadstone run` beside Rally: the same task file, the same requests, the same target.

Each task is carried out twice, with few and with many iterations: the difference is what
iterations cost, the rest is what starting, preparing and reporting cost. Memory and durations are
those of the few, which are as many for both.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.figures import ratios, spread, table
from bench.processes import Ended, tree
from bench.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from command_line import environment
from known_service import NAME, serving

CONCURRENCY = 16
FEW = 300
# So many that they stand out from what starting costs.
MANY = {"loadstone": 30_000, "Rally": 1300}
USERS = ((1, 1), (30, 100))  # projects, users in each


@dataclass(frozen=True, slots=True)
class Took:
    """What one task took."""

    cpu_s: float
    peak_mb: float
    load_s: float
    around_s: float  # full minus load duration


@dataclass(frozen=True, slots=True)
class Both:
    """What few and many iterations took."""

    few: Took
    many: Took
    times: int  # iterations of the many

    @property
    def iteration_ms(self) -> float:
        """CPU of one iteration."""
        return (self.many.cpu_s - self.few.cpu_s) / (self.times - FEW) * 1e3

    @property
    def besides_s(self) -> float:
        """CPU of what is no iteration."""
        return self.few.cpu_s - self.iteration_ms * FEW / 1e3


def rally(settings: Settings) -> Iterator[str]:
    """Authenticate.keystone, constant, 16 at once."""
    program = settings.rally and settings.rally / "bin/rally"
    if program is None or not program.exists():
        yield "Rally is not installed and left out (`python3 -m venv VENV && VENV/bin/pip install"
        yield "rally rally-openstack`, then `--rally VENV`)."
        return
    for projects, each in USERS:
        both: dict[str, list[Both]] = {"loadstone": [], "Rally": []}
        for number in range(settings.rounds):
            for name, results in both.items():
                print(f"{name} {projects * each} users {number + 1}", file=sys.stderr)
                ours = name == "loadstone"
                results.append(_both(None if ours else program, MANY[name], (projects, each)))
        yield f"{projects * each:,} users:"
        yield ""
        yield from _shown(both)
        yield ""


def _shown(both: dict[str, list[Both]]) -> Iterator[str]:
    head = ["", "CPU ms/iteration", "CPU s besides", "memory of the tree, MB"]
    head += ["load duration, s", "full minus load duration, s"]
    rows = []
    columns: dict[str, list[list[float]]] = {}
    for name, results in both.items():
        columns[name] = [
            [one.iteration_ms for one in results],
            [one.besides_s for one in results],
            [one.few.peak_mb for one in results],
            [one.few.load_s for one in results],
            [one.few.around_s for one in results],
        ]
        rows.append([name, *map(spread, columns[name])])
    pairs = zip(columns["Rally"], columns["loadstone"], strict=True)
    rows.append(["Rally / loadstone", *(ratios(theirs, ours) for theirs, ours in pairs)])
    yield from table(head, rows)


def _both(program: Path | None, many: int, users: tuple[int, int]) -> Both:
    took = []
    for times in (FEW, many):
        with tempfile.TemporaryDirectory() as home, _target() as url:
            task = Path(home) / "task.json"
            task.write_text(json.dumps(_task(times, *users)))
            if program is None:
                took.append(_loadstone(task, url))
            else:
                took.append(_rally(program, task, url))
    return Both(*took, many)


@contextmanager
def _target() -> Iterator[str]:
    with serving(f"--user={NAME}", f"--project={NAME}") as (port, _):
        yield f"http://127.0.0.1:{port}/v3"


def _task(times: int, projects: int, each: int) -> dict[str, object]:
    runner = {"type": "constant", "times": times, "concurrency": CONCURRENCY}
    users = {"tenants": projects, "users_per_tenant": each}
    return {"Authenticate.keystone": [{"runner": runner, "context": {"users": users}}]}


def _loadstone(task: Path, url: str) -> Took:
    report = task.with_name("report.json")
    words = ["run", str(task), "--rally-requests", "--rally-json", str(report)]
    ended = tree([sys.executable, "-m", "loadstone", *words], environment(url, task.parent))
    return _took(ended, report)


def _rally(program: Path, task: Path, url: str) -> Took:
    home = task.parent
    settings, report = home / "rally.conf", home / "report.json"
    settings.write_text(f"[database]\nconnection=sqlite:///{home}/rally.sqlite\n")
    command = [str(program), "--config-file", str(settings)]
    # Rally passes by the domains' ids.
    names = {"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"}
    variables = environment(url, home) | names | {"HOME": str(home)}
    tree([*command, "db", "create"], variables)
    tree([*command, "env", "create", "--name", "bench", "--from-sysenv"], variables)
    ended = tree([*command, "task", "start", str(task)], variables)
    tree([*command, "task", "report", "--json", "--out", str(report)], variables)
    return _took(ended, report)


def _took(ended: Ended, report: Path) -> Took:
    told = json.loads(report.read_text())["tasks"][0]["subtasks"][0]["workloads"][0]
    failed: Sequence[object] = [one for one in told["data"] if one["error"]]
    if failed:
        raise SystemExit(f"bench: {len(failed)} iterations have failed; {ended.told[-2000:]}")
    load_s = float(told["load_duration"])
    return Took(ended.cpu_s, ended.peak_mb, load_s, float(told["full_duration"]) - load_s)
