"""The schema of a study file."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from loadstone.rally.task.catalogue.form import Form

Text = Annotated[str, Field(max_length=2000)]
Repeats = Annotated[int, Field(ge=1, le=100)]
Pause = Annotated[float, Field(ge=0, le=3600)]
# The limits of a search's budget, as on the command line: tokens expire after an hour.
Budget = Annotated[float, Field(ge=20, le=3000)]
Iterations = Annotated[int, Field(ge=1, le=1_000_000)]
Users = Annotated[int, Field(ge=0, le=10_000)]
WarmUp = Annotated[float, Field(ge=0, le=600)]
PairsInTurns = Annotated[int, Field(ge=0, le=1000)]
# Told apart by hand, so that a wrong value has one error and not one for each alternative.
WarmUps = Annotated[
    Annotated[WarmUp, Tag("number")] | Annotated[dict[str, WarmUp], Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict) else "number"),
]
Factors = Annotated[dict[str, Any], Field(min_length=1)]


class SearchShape(Form):
    """A capacity search in every cell."""

    kind: Literal["capacity"] = "capacity"
    scenario: str = "issue"
    method: str = "meter"
    budget_s: Budget = 240.0
    max_rate_rps: Annotated[float, Field(ge=0.1, le=100_000)] = 5000.0
    users: Users = 10
    objectives: list[str] = Field(default_factory=list)
    # Before each search, not counted: for all services of the lab, or by service.
    warm_up_s: WarmUps = 0.0


class StepShape(Form):
    """A closed-loop load."""

    name: Annotated[str, Field(max_length=100)] | None = None
    scenario: str
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 1
    iterations: Iterations
    timed: bool = True
    at_most_s: Annotated[float, Field(ge=1, le=3000)] = 600.0


class StepsShape(Form):
    """Closed-loop loads in sequence in every cell."""

    kind: Literal["steps"]
    figure: str = "rate"
    users: Users = 10
    steps: Annotated[list[StepShape], Field(min_length=1)]


class StudyTaskShape(Form):
    """A Rally task in every cell."""

    kind: Literal["task"]
    figure: str = "mean"
    warm_ups: Annotated[int, Field(ge=0, le=10)] = 0
    until_failure: bool = False
    task: dict[str, Any]


class FaultsShape(Form):
    """Faults under a steady open load in every cell."""

    kind: Literal["faults"]
    do: Annotated[list[str], Field(min_length=1)]
    figures: Annotated[list[str], Field(min_length=1)]
    scenario: str = "issue"
    rate_rps: Annotated[float, Field(gt=0, le=100_000)] | None = None
    load: Annotated[float, Field(gt=0, le=10)] = 0.6  # share of N, used without rate_rps
    times: Repeats = 5  # repeats of each fault on the same deployment
    baseline_s: Annotated[float, Field(ge=1, le=600)] = 10.0
    observe_s: Annotated[float, Field(ge=1, le=3000)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    budget_s: Budget = 60.0  # of a search for N
    capacity_left: bool = False
    users: Users = 10


class ComparisonShape(Form):
    """Two levels of a factor; the second is divided by the first."""

    factor: str
    levels: Annotated[list[Any], Field(min_length=2, max_length=2)]


class PublishedShape(Form):
    """A figure that others have published."""

    cell: Factors
    step: str | None = None
    value: Annotated[float, Field(gt=0)]
    words: Text = ""


class ReferenceShape(Form):
    """An additional cell: `loadstone serve`, or with `settings` a deployment of the lab."""

    settings: dict[str, Any] = Field(default_factory=dict)
    value: Annotated[float, Field(gt=0)] | None = None  # published figure of a similar service
    words: Text = ""


class QuickShape(Form):
    """A shorter form of the study; absent fields do not change."""

    words: Text
    repeats: Repeats | None = None
    pause_s: Pause | None = None
    budget_s: Budget | None = None
    iterations: Iterations | None = None  # of each step, at most
    times: Repeats | None = None  # of each fault
    pairs_in_turns: PairsInTurns | None = None
    levels: dict[str, list[Any]] = Field(default_factory=dict)


class StudyShape(Form):
    """A study file."""

    title: Annotated[str, Field(max_length=255)]
    source: Text = ""
    notes: list[Text] = Field(default_factory=list)
    settings: dict[str, Any] = Field(default_factory=dict)
    factors: Factors
    cells: Annotated[list[Factors], Field(min_length=1)] | None = None
    repeats: Repeats = 1
    pause_s: Pause = 0.0
    which_saturates: bool = False  # whether a column names the limit
    costs: bool = False  # whether columns show p99, CPU per request and memory
    measurement: dict[str, Any] = Field(default_factory=dict)  # its fields depend on its kind
    compare: list[ComparisonShape] = Field(default_factory=list)
    # Pairs of trials in turns, at most, for each two cells that are compared; 0: none.
    pairs_in_turns: PairsInTurns | None = None
    published: list[PublishedShape] = Field(default_factory=list)
    reference: ReferenceShape | None = None
    quick: QuickShape | None = None
