"""One made result of each kind: searches, tasks, faults, a comparison, a study, an audit."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from audited import CONTEXT, document
from made_workloads import steps, workload
from realistic import keystone
from scripted import Scripted, simulated
from study_files import TWO_BY_TWO, result_of

from loadstone.analysis.fault import Injection
from loadstone.analysis.fault_effect import effect
from loadstone.analysis.model import Trial
from loadstone.analysis.sla import Check
from loadstone.audit import rule
from loadstone.audit.evaluate import Audit, evaluate
from loadstone.audit.extract import extract
from loadstone.audit.facts import HostFacts
from loadstone.compare.answer import Criteria, compare
from loadstone.compare.metrics import P95, P99, THROUGHPUT
from loadstone.compare.section import Compared
from loadstone.diagnosis.bottleneck import Case, name_bottleneck
from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse, Setup
from loadstone.diagnosis.resources import Resources, Timeline
from loadstone.engine.samples import Samples
from loadstone.monitor.roles import Role
from loadstone.plan.hooks import HookRun
from loadstone.report.settings import SettingDifference
from loadstone.result.model import Run
from loadstone.result.task_workload import TaskWorkload
from loadstone.search.model import Capacity
from loadstone.store.location import StoreLocation
from loadstone.study.journal import BegunStudy, StudyJournal
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.table import TurnOutcome

SEARCHES, SAMPLES = keystone()
CHECKS = (Check("failure_rate", True, "0 of 206 failed"), Check("max_avg_duration", False, "0.3 s"))
RULES = {"HOST-00", "HOST-04", "KS-01", "KS-05", "KS-12", "MC-01", "WEB-01", "WEB-06", "DB-01"}
OUTPUT = '{"additive": [], "complete": []}'
KILL = "kill mysql service on one node"


def runs() -> dict[str, Run]:
    """Return the runs by kind."""
    return {
        "search": _kept(SEARCHES),
        "bottleneck": _bottleneck(),
        "no capacity": _without_capacity(),
        "generator": _generator(),
        "failed": replace(
            SEARCHES, status="failed", failure="Keystone died: exit 137", measurements=()
        ),
        "task": _task(),
        "steps": _steps(),
        "fault": _fault(),
    }


def samples_of(trial: Trial) -> Samples:
    """Return the samples of a trial of these runs."""
    index, number = (trial.samples_file or "0-3").split("-")
    return SAMPLES[int(index), int(number)]


def _kept(run: Run) -> Run:
    """Name the sample file of each trial."""
    return replace(
        run,
        measurements=tuple(
            replace(
                measurement,
                trials=tuple(
                    replace(trial, samples_file=f"{index}-{trial.number}")
                    for trial in measurement.trials
                ),
            )
            for index, measurement in enumerate(run.measurements)
        ),
    )


def _bottleneck() -> Run:
    use = ResourceUse("Keystone's CPU", BottleneckKind.CPU, Role.KEYSTONE, 1.96, 2, "cores", 0.272)
    seen = Observation(30.0, 216, (use,), (("worker_cpu", 0.98), ("workers", 2.0)))
    verdict = name_bottleneck(Case(seen, Setup(workers=2, threads=1)))
    timeline = Timeline("Keystone's CPU", ((0.5, 0.9), (1.5, 1.0)))
    missing = ("mariadb is not watched: Access denied",)
    resources = Resources(seen, verdict.bottleneck, verdict.findings, (timeline,), missing)
    run = _kept(replace(SEARCHES, kind="capacity", measurements=SEARCHES.measurements[:1]))
    [search] = run.measurements
    trials = tuple(replace(trial, resources=resources) for trial in search.trials)
    return replace(run, measurements=(replace(search, trials=trials),))


def _without_capacity() -> Run:
    run = _kept(SEARCHES)
    issue = run.measurements[0]
    found = (
        None,
        Capacity(50.0, 50.0, None, 0.95),
        Capacity(None, None, 5.0, 0.0),
        Capacity(None, 5.0, 7.0, 0.0),
        Capacity(None, None, None, 0.0, ("the load generator was the limit, not the service",)),
    )
    searches = tuple(replace(issue, capacity=one, trials=issue.trials[:1]) for one in found)
    return replace(run, measurements=searches)


def _generator() -> Run:
    """Every trial was limited by the generator, spoke HTTP/2 over TLS, and sent some twice."""
    run = _kept(SEARCHES)
    [issue, _] = run.measurements
    trials = tuple(
        replace(
            trial,
            health=replace(
                trial.health, http="2", retries=3, tls_resumption=False, limits=("no core free",)
            ),
        )
        for trial in issue.trials
    )
    return replace(run, measurements=(replace(issue, trials=trials),))


def _task() -> Run:
    hooks = (
        HookRun(0, "time", 1, 1001.0, 1003.5, OUTPUT, ("Subprocess returned 3", "no such file")),
        HookRun(0, "iteration", 5, 1004.0, 1004.5, OUTPUT),
    )
    known = SEARCHES.measurements[0].trials[2]
    of_trial = {
        "health": known.health,
        "usage": known.usage,
        "hook_runs": hooks,
        "samples_file": "0-3",
    }
    given = TaskWorkload(
        runner={"constant": {"times": 206, "concurrency": 2}},
        hooks=({"action": {"sys_call": "false"}, "trigger": {"event": {"unit": "time"}}},),
    )
    broken = workload(SAMPLES[0, 3], CHECKS, given, of_trial, wall_s=70.0)
    failed = replace(broken, title="Never", trials=(), status="failed", failure="no such role")
    return replace(SEARCHES, kind="task", measurements=(broken, failed))


def _steps() -> Run:
    runners = [{"constant": {"times": 9, "concurrency": count}} for count in (2, 4)]
    rising = steps(
        workload(SAMPLES[0, 3], subtask="Rising", title="Rising"),
        runners,
        checks=[(Check("failure_rate", held, ""),) for held in (True, False)],
    )
    return replace(SEARCHES, kind="task", measurements=(rising,))


def _fault() -> Run:
    first = SEARCHES.measurements[0]
    effects = (
        effect(
            simulated(Scripted("dark", 10.0, lasts_s), 1),
            Injection(KILL, 10.0, 10.0 + lasts_s, 0.5, ("mariadb",)),
        )
        for lasts_s in (1.0, 2.0)
    )
    trials = tuple(
        replace(first.trials[0], number=number, faults=(one,), samples_file="0-1")
        for number, one in enumerate(effects, 1)
    )
    measurement = replace(first, policy="fixed", capacity=None, trials=trials)
    return replace(SEARCHES, kind="fault", measurements=(measurement,))


def compared() -> Compared:
    """A comparison in which B has more throughput and about the same latency."""
    pairs = [(100.0 + one, 118.0 + one) for one in range(8)]
    close = [(0.100 + one / 1000, 0.101 + one / 1000) for one in range(8)]
    apart = [(0.2, 0.3), (0.3, 0.2)] * 4
    metrics = compare({THROUGHPUT: pairs, P95: close, P99: apart}, Criteria())
    return Compared(
        ("slow", "fast"),
        (SettingDifference("workers", ("1", "2")), SettingDifference("cache", (None, "enabled"))),
        (("token issue", metrics),),
        Criteria(),
        is_paired=True,
        run_ids=("20261121-0931-ab12cd", "20261121-0931-ab12ce"),
        most_slower=0.05,
        notes=("The machine was busy with other work in 1 of 8 pairs.",),
    )


def study() -> tuple[StudyJournal, Sequence[TurnOutcome]]:
    """A study of which a half has been measured."""
    source = StudySource("mine.yaml", TWO_BY_TWO)
    begun = BegunStudy(source.file, source.text, False, 5, "2026-11-21T09:00:00+00:00")
    store = Path("/var/lib/loadstone/results")
    path = store / "studies" / "20261121-0900-abcdef" / "journal.jsonl"
    journal = StudyJournal(path, begun, StoreLocation.of(store))
    rates = {("apache", "2"): (10.0, 10.5, 11.0), ("nginx", "2"): (20.0, 20.0, 23.0)}
    outcomes = []
    for turn in turns(begun.study(), begun.seed):
        levels = dict(turn.cell.levels)
        found = rates.get((levels["web"], levels["workers"]))
        run = result_of(f"run-{turn.number}", found[turn.repeat - 1]) if found else None
        outcomes.append(TurnOutcome(turn, run, None if run else "apache is not installed"))
    return journal, outcomes


def audit() -> Audit:
    """An audit of a host with bad settings, and of one that did not answer."""
    changes = {
        "keystone": {
            "/etc/keystone/keystone.conf": "[DEFAULT]\ndebug = true\n[cache]\nenabled = true\n"
        },
        "uwsgi": {"/etc/keystone/uwsgi.ini": "[uwsgi]\nprocesses = 1\nlisten = 10\n"},
        "sysctl": {"net/core/somaxconn": 128},
    }
    silent = HostFacts("control2", failure="no complete answer within 60 s <&>")
    rules = [one for one in rule.select(()) if one.id in RULES]
    return evaluate(rules, [extract("control1", document(changes), CONTEXT), silent])
