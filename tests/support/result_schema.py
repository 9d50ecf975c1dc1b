"""The shape of a report as data, for programs that read it: `--json` of every command.

`result.schema.json` of `loadstone.report` is written from these models, and so are the tables in
docs/results.md: `python tests/support/result_schema.py docs/results.md`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from loadstone import report
from loadstone.analysis.model import Failure as KeptFailure
from loadstone.analysis.sla import Check
from loadstone.diagnosis.finding import AuditFinding
from loadstone.engine.health import PartHealth
from loadstone.report.data import SCHEMA_VERSION
from loadstone.report.section import NextStep, Statement
from loadstone.result.model import Reduction

FILE = Path(report.__file__).parent / "result.schema.json"
BEGIN, END = "<!-- result schema -->\n\n", "\n<!-- end of result schema -->"
Number = float | None
Pairs = dict[str, str]
State = Literal["running", "finished", "aborted", "interrupted", "failed"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", title="")


class AnswerData(_Part):
    """What was measured."""

    label: str = Field(
        description="`N`, `predicted N`, `throughput`, `highest throughput` (of `run --step`, "
        "perhaps `with its SLA held`), `downtime`, `B / A`, `nodes` (of `size`), `gain` (of "
        "`tune`), or the name of a study's figure"
    )
    text: str = Field(description="as shown: `33`, `at least 40`, `not found`")
    unit: str
    value: Number = Field(description="`null` if there is none, or only a bound")
    low: Number
    high: Number = Field(description="with `low` the interval; `null` where a side is not known")
    confidence: float = Field(description="of the interval, 0 to 1; 0 if it is not known")
    sentence: str


class CertaintyData(_Part):
    """Whether the answer can be relied on."""

    text: str
    exit_code: int = Field(description="of this measurement: 0, 1, 2, 3 or 4")
    reason: str | None = Field(description="why it is not 0")


class FactData(_Part):
    """A line of the summary."""

    label: str
    text: str


class CapacityData(_Part):
    """N of a search."""

    rate_rps: Number = Field(description="N; `null` if it was not found")
    low_rps: Number
    high_rps: Number = Field(description="with `low_rps` the interval of N")
    confidence: Number = Field(
        description="the share of such searches whose interval contains the true capacity; 0 if it "
        "is not known"
    )
    kind: str | None = Field(
        description="what limits: saturation, refusal, objective, ceiling, ..."
    )
    words: list[str] = Field(description="what the number alone does not show")


class PredictionData(_Part):
    """N as predicted from a low load."""

    rate_rps: float
    low_rps: float
    high_rps: float
    limit: str = Field(description="what would saturate first")
    at_rps: float = Field(description="the low load")
    requests: int
    words: list[str]


class FloorData(_Part):
    """Result of --fail-below."""

    least_rps: float
    outcome: Literal["reached", "missed", "undecided"]


class LagData(_Part):
    """From a request's due time to its first send, or to the SYN of its connection."""

    p50: Number
    p99: Number
    max: Number


class GeneratorData(_Part):
    """The load generator over the trials that count."""

    send_lag_ms: LagData = Field(
        description="the worst of these trials, without the wait for a free connection"
    )
    cpu_share: Number = Field(description="of one core per engine thread")
    cpu_share_max: Number = Field(description="in the trial where it was highest")
    valid: bool = Field(description="the answer is based on trials that it did not limit")
    invalid_trials: list[int] = Field(description="trials in which it was the limit")
    reasons: list[str]


class WaitData(_Part):
    """How long iterations waited for a connection."""

    p99: Number
    max: Number


class HealthData(_Part):
    """The load generator in one trial."""

    send_lag_ms: LagData
    connection_wait_ms: WaitData = Field(description="over all iterations; no part of the lag")
    waited: int = Field(description="iterations that waited as all connections were in use")
    requests_without_port: int = Field(description="the machine had no local port left")
    http: str
    ceiling: str | None = Field(description="why the limit on the load set the rate")
    tls_resumption: bool | None = Field(description="`null` over http")
    cpu_share: Number
    core_wait_seconds: Number = Field(
        description="its threads were ready to run, and other programs had the cores"
    )
    valid: bool
    reasons: list[str]
    parts: list[PartHealth] = Field(description="of a fleet, each host")


class DurationsData(_Part):
    """Durations of successes, in seconds; `null` without one."""

    name: str
    count: int
    ok: int
    success: float = Field(description="share of successes, 0 to 1")
    min_s: Number
    median_s: Number
    p90_s: Number
    p95_s: Number
    p99_s: Number
    max_s: Number
    mean_s: Number
    repeats: int = Field(description="most occurrences in one iteration")


class EndedData(_Part):
    """A process of the service that ended under load."""

    part: str
    pid: int
    at_seconds: float


class UsageData(_Part):
    """CPU of machine, service and generator; `_busy` are shares of all cores."""

    cores: int
    machine_busy: Number
    machine_steal: Number
    service_cpu_seconds: Number
    service_busy: Number
    generator_cpu_seconds: Number
    generator_busy: Number
    ended_processes: list[EndedData]


class ResourceData(_Part):
    """The use of one resource."""

    name: str
    kind: str
    role: str
    busy: Number = Field(description="mean amount in use")
    capacity: Number
    unit: str
    utilisation: Number
    demand_ms: Number = Field(description="busy time of one request")
    bound_rps: Number = Field(description="the rate at which it would be busy all the time")


class RequestKindData(_Part):
    """Requests to Keystone of one kind."""

    kind: str = Field(
        description="login, validation, revocation, other, service login or discovery"
    )
    count: int = Field(description="during the load")
    idle: float = Field(description="how many of them would have occurred without load")
    per_iteration: float
    is_once: bool = Field(description="for the services' own tokens; not in the sum")


class KnownCapacityData(_Part):
    """N of Keystone for one kind of request."""

    kind: str
    rate_rps: float
    run_id: str


class IdentityRequestsData(_Part):
    """Requests to Keystone that the load caused, on a lab with a compute cloud."""

    iterations: int
    per_iteration: float = Field(description="without those marked `is_once`")
    kinds: list[RequestKindData]
    bound_rps: Number = Field(description="iterations per second that Keystone's N sustains")
    measured: list[KnownCapacityData] = Field(description="the N from which it is computed")


class TracedRequestData(_Part):
    """A request that carried a `traceparent`, for a look-up in the service's tracing."""

    trace_id: str
    action: str
    iteration: int = Field(description="from 1")
    due_seconds: Number = Field(description="since the load's start")
    latency_seconds: Number = Field(description="since its due time")
    result: str = Field(description="an HTTP status, or how it failed")


class TrialData(_Part):
    """One load."""

    number: int
    purpose: str
    status: State
    runner: dict[str, Any] | None = Field(description="of a step, in Rally's format")
    start_time: Number = Field(description="Unix time")
    rate_rps: Number = Field(description="offered; `null` if no constant rate was offered")
    seconds: Number = Field(description="from the first due time to the last end")
    planned_seconds: Number
    wall_seconds: Number = Field(description="of a step, with set-up and clean-up")
    requests: int = Field(description="iterations that were due")
    cut_off: int = Field(description="iterations that had not ended with the load")
    throughput_rps: Number = Field(description="successful iterations while load was offered")
    latency: DurationsData = Field(description="from the due time")
    service_time: DurationsData = Field(description="from the actual send")
    idle: DurationsData | None = Field(description="pauses")
    actions: list[DurationsData]
    errors: int
    errors_by_kind: dict[str, int]
    failures: list[KeptFailure] = Field(description="each cause with one full message")
    retried: int | None = Field(
        description="requests sent a second time, as the service had closed the kept connection"
    )
    backlog_growth: Number = Field(description="seconds of offered work per second")
    verdict: Literal["sustained", "degraded", "invalid", "undecided"]
    cause: str | None
    reasons: list[str]
    checks: list[Check]
    generator: HealthData | None = Field(description="`null` of another tool")
    usage: UsageData | None = Field(description="`null` if it was not observed")
    resources: list[ResourceData]
    identity_requests: IdentityRequestsData | None
    outputs: list[dict[str, Any]] = Field(description="charts of iterations, in Rally's format")
    outputs_dropped: int
    traces: list[TracedRequestData] = Field(
        description="the slowest requests that carried a `traceparent` (--trace-share)"
    )
    readings_file: str | None
    samples_file: str | None


class FindingData(_Part):
    """A limit, with its figures and what to try."""

    id: str
    sentence: str
    evidence: Pairs
    confidence: str
    advice: str


class BottleneckData(_Part):
    """The resource that limits throughput."""

    kind: str
    role: str
    utilisation: Number
    demand_ms: Number
    sentence: str


class ChangeData(_Part):
    """The bound after one change of the service."""

    change: str
    rate_rps: float
    limit: str


class BoundsData(_Part):
    """The highest throughput that the costs of a request allow."""

    rate_rps: float
    limit: str
    changes: list[ChangeData]


class ProfileData(_Part):
    """Where the workers' time goes."""

    trial: int
    seconds: float
    workers: int
    samples: int
    rate_hz: int
    parts: dict[str, float]
    idle: Number
    profiler_cores: float
    file: str
    words: list[str]


class _Measured(_Part):
    name: str = Field(description="as the report names it")
    title: str
    scenario: str | None
    answer: AnswerData
    certainty: CertaintyData
    limit: str | None = Field(description="what limits the answer, by name")
    facts: list[FactData] = Field(description="the lines of the summary")
    statements: list[Statement] = Field(description="what the figures say")
    method: list[str]


class MeasurementData(_Measured):
    """One scenario under one load policy."""

    scenario: str
    subtask: str
    subtask_description: str
    description: str
    request: str
    policy: Literal["search", "fixed", "prediction", "steps", "turns"]
    status: State
    failure: str | None
    parameters: Pairs
    given: dict[str, Any] | None = Field(description="a task's workload in Rally's format")
    config_id: str | None = Field(description="equal for workloads with the same load")
    requests_as_rally: bool = Field(description="iterations sent every request that Rally sends")
    paced_as_rally: bool = Field(description="an rps runner kept its rate as Rally does")
    reduced: list[Reduction] = Field(description="settings that --at-most reduced")
    capacity: CapacityData | None
    predicted: PredictionData | None
    floor: FloorData | None
    checks: list[Check] = Field(
        description="criteria: SLA rules and objectives; of a search, each trial has its own"
    )
    checks_passed: bool | None = Field(description="`null` without criteria")
    load_seconds: Number
    wall_seconds: Number
    generator: GeneratorData | None
    bottleneck: BottleneckData | None
    bounds: BoundsData | None
    resources: list[ResourceData] = Field(description="in the trial with the highest rate")
    resource_figures: dict[str, Number]
    not_watched: list[str]
    findings: list[FindingData]
    faults: list[dict[str, Any]] = Field(description="[effects of faults](faults.md)")
    unmeasured_faults: list[dict[str, Any]] = Field(
        description="injected faults without figures: `action`, `reason`, `repeat`"
    )
    faults_summary: list[dict[str, Any]] = Field(description="over the repeats of a fault")
    profile: ProfileData | None
    hooks: list[dict[str, Any]] = Field(description="in Rally's format")
    trials: list[TrialData]


class ComparedData(_Measured):
    """One scenario of a comparison."""

    metrics: dict[str, dict[str, Any]] = Field(
        description="by name: `unit`, `a`, `b`, `ratio` (B / A), `low`, `high`, `pairs`, `answer`"
    )


class CellData(_Measured):
    """One cell of a study, or one step of it."""

    levels: Pairs
    step: str | None
    settings: Pairs
    value: Number
    low: Number
    high: Number
    confidence: Number
    values: list[Number] = Field(description="of each measured repeat")
    repeats: int
    generator_valid: bool | None
    published: Number
    published_words: str | None
    failures: list[str]
    run_ids: list[str]
    saturates: list[str] | None
    p99_ms: float | None = Field(
        description="latency in the fastest sustained trial, if the study shows costs"
    )
    cpu_ms: float | None = Field(description="CPU time per request, likewise")
    memory_mb: float | None = Field(description="of the service's own processes, likewise")


class SizingData(_Measured):
    """A sizing."""


class ProofData(_Part):
    """Fresh pairs of the default and one combination."""

    changes: Pairs
    gain: Number = Field(description="how many times better; `null` if it could not be measured")
    low: Number
    high: Number
    pairs: int
    not_full: str | None = Field(description="which of the two may not have been full, if one")
    failure: str | None
    runs: list[str]
    failed_runs: list[str] = Field(description="of attempts that gave no evidence")


class TuningData(_Measured):
    """A tuning."""

    title: str
    scenario: str
    has_gain: bool
    changes: Pairs = Field(description="settings to change; empty if no gain is shown")
    seen_while_searching: Number = Field(description="of the best; not the gain")
    confidence_of_each_proof: float
    proof: ProofData | None = Field(description="of the best of the search")
    proof_again: ProofData | None = Field(description="without the settings that carry nothing")
    ablation: list[dict[str, Any]] = Field(
        description="each setting put back: `setting`, `value`, `ratio`, `pairs`, `p`, `kept`"
    )
    trades: list[dict[str, Any]] = Field(description="never gains; `--with-trades`")
    lines: list[dict[str, Any]] = Field(description="of files: `file`, `section`, `line`")
    trials: list[dict[str, Any]] = Field(
        description="of the search: `changes`, `from`, `ratio`, `pairs`, `rounds`, `failure`, "
        "`failed_runs`"
    )
    capacities: dict[str, Any] | None = Field(
        description="N of a search of each: `default` and `changed` with `rate_rps`, `low_rps`, "
        "`high_rps`; `runs`"
    )
    cut_short: list[str] = Field(description="what the budget left no time for")


class EnvironmentData(_Part):
    """Machine and target."""

    machine: Pairs
    target: Pairs
    facts: Pairs = Field(description="settings that the audit read")
    audit: list[AuditFinding]


class _Document(_Part):
    schema_version: Literal[3] = Field(
        description="it changes when a field is removed or changes its meaning"
    )
    headline: str
    exit_code: int
    next_steps: list[NextStep] = Field(description="what to do, the most important first")
    statements: list[Statement] = Field(
        description="what holds of all measurements together, warnings among them"
    )


class RunDocument(_Document):
    """A search, a task, a fault, or a turn of a study."""

    document: Literal["run"]
    run_id: str
    kind: str
    title: str
    status: State
    started_at: str
    ended_at: str | None
    command: str
    failure: str | None = Field(description="why it ended early")
    environment: EnvironmentData
    measurements: list[MeasurementData]


class ComparisonDocument(_Document):
    """A comparison."""

    document: Literal["comparison"]
    runs: list[str]
    a: str
    b: str
    interleaved: bool
    settings: list[dict[str, Any]] = Field(description="that differ: `name`, `a`, `b`")
    same_within: float
    notes: list[str]
    guard: dict[str, Any] | None = Field(description="result of --fail-if-slower")
    where: dict[str, Any] | None = Field(description="with --profile: where the difference lies")
    comparisons: list[dict[str, Any]] | None = Field(
        None, description="with more than two targets: each with the first, in these fields"
    )
    bisection: dict[str, Any] | None = Field(None, description="of `loadstone bisect`")
    measurements: list[ComparedData]


class StudyDocument(_Document):
    """A study, complete or not."""

    document: Literal["study"]
    study_id: str
    study: str
    title: str
    source: str
    notes: list[str]
    quick: str | None
    seed: int
    started_at: str
    missing: int
    figure: dict[str, str]
    differences: list[dict[str, Any]]
    measurements: list[CellData]


class SizingDocument(_Document):
    """A sizing."""

    document: Literal["sizing"]
    utilisation: float
    boots: dict[str, Any] | None
    rates_rps: dict[str, float]
    cores: dict[str, dict[str, Number]]
    workers: dict[str, Number]
    cores_per_node: int
    nodes: dict[str, Number]
    database: dict[str, Any] | None
    memcached: dict[str, Any] | None
    measured_machine_full_at: dict[str, Number] | None
    demands: list[dict[str, Any]]
    assumptions: list[str]
    measurements: list[SizingData]


class TuningDocument(_Document):
    """A tuning."""

    document: Literal["tuning"]
    tuning_id: str
    space: str
    objective: str
    budget_s: float
    spent_s: float
    started_at: str
    default: Pairs
    command: str
    measurements: list[TuningData]


Document = Annotated[
    RunDocument | ComparisonDocument | StudyDocument | SizingDocument | TuningDocument,
    Field(discriminator="document"),
]
_ADAPTER: TypeAdapter[Any] = TypeAdapter(Document)
# The tables of docs/results.md.
TABLES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("A run", RunDocument),
    ("`measurements[]`", MeasurementData),
    ("`answer`", AnswerData),
    ("`certainty`", CertaintyData),
    ("`capacity`", CapacityData),
    ("`generator`", GeneratorData),
    ("`trials[]`", TrialData),
    ("`trials[].latency`, `service_time`, `idle`, `actions[]`", DurationsData),
    ("`trials[].generator`", HealthData),
    ("`trials[].usage`", UsageData),
    ("`resources[]`", ResourceData),
    ("`trials[].traces[]`", TracedRequestData),
    ("`trials[].identity_requests`", IdentityRequestsData),
    ("`trials[].identity_requests.kinds[]`", RequestKindData),
)


def check(data: object) -> None:
    """Raise ValueError if data has not the shape of a report."""
    _ADAPTER.validate_python(data)


def schema() -> str:
    """Return the JSON Schema as text."""
    found = _ADAPTER.json_schema()
    return (
        json.dumps({"title": f"Loadstone report, version {SCHEMA_VERSION}", **found}, indent=1)
        + "\n"
    )


def published() -> str:
    """Return the JSON Schema that is in the package."""
    return FILE.read_text("utf-8")


def tables() -> str:
    """Return the tables of docs/results.md: each field that is described."""
    return "\n".join(line for title, model in TABLES for line in _table(title, model))


def _table(title: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"**{title}**: {(model.__doc__ or '').strip()}\n"
    yield "| field | meaning |"
    yield "| --- | --- |"
    bare = []
    for name, field in model.model_fields.items():
        if field.description:
            yield f"| `{name}` | {field.description} |"
        else:
            bare.append(f"`{name}`")
    if bare:
        yield f"| {', '.join(bare)} | as named |"
    yield ""


def with_tables(page: str) -> str:
    """Return docs/results.md with the tables as they are."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + tables() + end + after


def _main(page: Path) -> None:
    page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
    FILE.write_text(schema(), "utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
