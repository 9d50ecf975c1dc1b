"""What a study file looks like."""

from typing import Annotated, Any

from pydantic import Field

from loadstone.task.catalogue.form import Form

Text = Annotated[str, Field(max_length=2000)]
Repeats = Annotated[int, Field(ge=1, le=100)]
Pause = Annotated[float, Field(ge=0, le=3600)]
# A search's own bounds, as on the command line: tokens last an hour.
Budget = Annotated[float, Field(ge=20, le=3000)]
Factors = Annotated[dict[str, Any], Field(min_length=1)]


class MeasurementShape(Form):
    """A capacity search in every cell."""

    scenario: str = "issue"
    method: str = "meter"
    budget_s: Budget = 240.0
    max_rate_rps: Annotated[float, Field(ge=0.1, le=100_000)] = 5000.0
    users: Annotated[int, Field(ge=0, le=10_000)] = 10
    objectives: list[str] = Field(default_factory=list)


class ComparisonShape(Form):
    """Two levels of a factor; the second is divided by the first."""

    factor: str
    levels: Annotated[list[Any], Field(min_length=2, max_length=2)]


class PublishedShape(Form):
    """A figure that others have published."""

    cell: Factors
    rate_rps: Annotated[float, Field(gt=0)]
    words: Text = ""


class QuickShape(Form):
    """A shorter form of the study; what is absent stays as it is."""

    words: Text
    repeats: Repeats | None = None
    pause_s: Pause | None = None
    budget_s: Budget | None = None
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
    measurement: MeasurementShape = MeasurementShape()
    compare: list[ComparisonShape] = Field(default_factory=list)
    published: list[PublishedShape] = Field(default_factory=list)
    quick: QuickShape | None = None
