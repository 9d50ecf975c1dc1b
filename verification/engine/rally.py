"""`loadstone run` beside Rally: the same task file on the same target.

Loadstone carries it out as it says (one authentication is one POST) and, with --rally-requests, by
all that Rally sends for it. What an iteration costs is the difference between two runs of unlike
length, so that starting, preparing and removing are not in it. Memory and durations are those of
the run of TIMES iterations, which is as long for all.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from verification.engine.figures import ratios, spread, table
from verification.engine.processes import Ended, tree
from verification.engine.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import environment
from known_service import NAME, serving

CONCURRENCY = 16
TIMES = 10_000
ONE, MANY = (1, 1), (30, 100)  # projects, users in each
MOST_ROUNDS_OF_MANY = 5  # to make and to remove 3,000 users takes most of a round
RALLY = "Rally"
BEARS_RPS = 5_000
# Who sends how much to what, with one and with many users. Of a target that does what it can, each
# user is a further thing to know, and to find; one that sustains so much is as fast for all.
FASTEST, FIXED = "as fast as it can", f"sustains {BEARS_RPS:,}/s"
OPTIONS = {FASTEST: (), FIXED: (f"--capacity={BEARS_RPS}", "--workers=2")}
MANY_TIMES = {("loadstone", FIXED): 30_000, ("loadstone", FASTEST): 200_000, (RALLY, FASTEST): 300}
# To set against TIMES: far more where iterations are cheap, else starting would drown them.
LENGTHS = {"loadstone": 200_000, "loadstone --rally-requests": 60_000, RALLY: 300}


@dataclass(frozen=True, slots=True)
class Took:
    """What one task took."""

    times: int
    cpu_s: float
    peak_mb: float
    load_s: float
    around_s: float  # full minus load duration

    @property
    def rate(self) -> float:
        """Iterations per second."""
        return self.times / self.load_s


@dataclass(frozen=True, slots=True)
class Both:
    """What TIMES iterations took, and another number of them."""

    stated: Took
    other: Took

    @property
    def iteration_ms(self) -> float:
        """CPU of one iteration."""
        more = self.other.times - self.stated.times
        return (self.other.cpu_s - self.stated.cpu_s) / more * 1e3

    @property
    def besides_s(self) -> float:
        """CPU of what is no iteration."""
        return self.stated.cpu_s - self.iteration_ms * self.stated.times / 1e3


def rally(settings: Settings) -> Iterator[str]:
    """Authenticate.keystone, constant, 16 at once."""
    program = settings.rally and settings.rally / "bin/rally"
    if program is None or not program.exists():
        yield "Rally is not installed and left out (`python3 -m venv VENV && VENV/bin/pip install"
        yield "rally rally-openstack`, then `--rally VENV`)."
        return
    yield from _costs(program, settings.rounds)
    yield ""
    yield from _rates(program, min(settings.rounds, MOST_ROUNDS_OF_MANY))


def _costs(program: Path, rounds: int) -> Iterator[str]:
    results: dict[str, list[Both]] = {name: [] for name in LENGTHS}
    for number in range(rounds):
        for name, other in LENGTHS.items():
            print(f"{name} {number + 1}", file=sys.stderr)
            stated = _carried_out(name, program, TIMES, ONE)
            results[name].append(Both(stated, _carried_out(name, program, other, ONE)))
    yield f"{TIMES:,} iterations, one user:"
    yield ""
    head = ["", "CPU ms/iteration", "CPU s besides", "memory of the tree, MB"]
    head += ["iterations/s", "full minus load duration, s"]
    columns = {name: _columns(both) for name, both in results.items()}
    forms = (".4f", ".2f", ".0f", ",.0f", ".2f")
    rows = [
        [name, *(spread(figures, form) for figures, form in zip(own, forms, strict=True))]
        for name, own in columns.items()
    ]
    for name, own in columns.items():
        if name != RALLY:
            pairs = zip(columns[RALLY], own, strict=True)
            rows.append([f"{RALLY} / {name}", *(ratios(theirs, ours) for theirs, ours in pairs)])
    yield from table(head, rows)


def _columns(results: Sequence[Both]) -> list[list[float]]:
    return [
        [one.iteration_ms for one in results],
        [one.besides_s for one in results],
        [one.stated.peak_mb for one in results],
        [one.stated.rate for one in results],
        [one.stated.around_s for one in results],
    ]


def _rates(program: Path, rounds: int) -> Iterator[str]:
    rates: dict[tuple[str, str], list[list[float]]] = {}
    for (name, target), times in MANY_TIMES.items():
        # Rally takes minutes for many users, and what it loses is not a matter of a few per cent.
        for number in range(1 if name == RALLY else rounds):
            print(f"{name}, target {target}, {number + 1}", file=sys.stderr)
            order = (ONE, MANY) if number % 2 else (MANY, ONE)
            took = {users: _carried_out(name, program, times, users, target) for users in order}
            rates.setdefault((name, target), []).append([took[ONE].rate, took[MANY].rate])
    many = MANY[0] * MANY[1]
    yield f"Iterations per second with one and with {many:,} users ({RALLY}: one round):"
    yield ""
    rows = []
    for (name, target), pairs in rates.items():
        one, all_of_them = zip(*pairs, strict=True)
        columns = [spread(one, ",.0f"), spread(all_of_them, ",.0f"), ratios(all_of_them, one)]
        rows.append([name, target, f"{MANY_TIMES[name, target]:,}", *columns])
    yield from table(["", "target", "iterations", "one user", f"{many:,} users", "ratio"], rows)


def _carried_out(
    name: str, program: Path, times: int, users: tuple[int, int], target: str = FASTEST
) -> Took:
    with tempfile.TemporaryDirectory() as home, _target(target) as url:
        task = Path(home) / "task.json"
        task.write_text(json.dumps(_task(times, *users)))
        if name == RALLY:
            return _rally(program, task, url)
        return _loadstone(task, url, name.split()[1:])


@contextmanager
def _target(name: str) -> Iterator[str]:
    with serving(*OPTIONS[name], f"--user={NAME}", f"--project={NAME}") as (port, _):
        yield f"http://127.0.0.1:{port}/v3"


def _task(times: int, projects: int, each: int) -> dict[str, object]:
    runner = {"type": "constant", "times": times, "concurrency": CONCURRENCY}
    users = {"tenants": projects, "users_per_tenant": each}
    return {"Authenticate.keystone": [{"runner": runner, "context": {"users": users}}]}


def _loadstone(task: Path, url: str, words: Sequence[str]) -> Took:
    report = task.with_name("report.json")
    command = [sys.executable, "-m", "loadstone"]
    variables = environment(url, task.parent)
    # Each has a database before it is measured.
    tree([*command, "results", "list"], variables)
    ended = tree([*command, "run", str(task), "--json", str(report), *words], variables)
    told = json.loads(report.read_text())["measurements"][0]
    total = told["trials"][0]["latency"]
    _all_well(total["count"] - total["ok"], ended)
    return _took(total["count"], ended, told["load_seconds"], told["wall_seconds"])


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
    told = json.loads(report.read_text())["tasks"][0]["subtasks"][0]["workloads"][0]
    _all_well(sum(bool(one["error"]) for one in told["data"]), ended)
    return _took(len(told["data"]), ended, told["load_duration"], told["full_duration"])


def _took(times: int, ended: Ended, load_s: float, full_s: float) -> Took:
    return Took(times, ended.cpu_s, ended.peak_mb, float(load_s), float(full_s) - float(load_s))


def _all_well(failed: int, ended: Ended) -> None:
    if failed:
        raise SystemExit(f"verify: {failed} iterations have failed; {ended.told[-2000:]}")
