"""SLA rules: the criteria of a workload."""

from typing import Annotated

from pydantic import Field, RootModel, model_validator

from loadstone.analysis import criteria
from loadstone.rally.task.catalogue.form import ROOT_RULES, Form, Percent, PositiveSeconds, Whole


class FailureRateForm(Form):
    """Share of failed iterations in percent."""

    min: Percent = Field(0, description="Minimum percentage of failures.")
    max: Percent = Field(100, description="Maximum percentage of failures.")

    @model_validator(mode="after")
    def _says_something(self) -> "FailureRateForm":
        if not self.model_fields_set:
            raise ValueError("needs min, max or both")
        return self

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.FailureRate(self.min, self.max)


class SecondsForm(RootModel[PositiveSeconds]):
    """A number of seconds greater than 0."""

    model_config = ROOT_RULES


class MaxSecondsPerIterationForm(SecondsForm):
    """Duration of the longest iteration in seconds, failed ones included."""

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.MaxSecondsPerIteration(self.root)


class MaxAvgDurationForm(SecondsForm):
    """Mean duration of successful iterations in seconds."""

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.MaxAvgDuration(self.root)


class MaxAvgDurationPerAtomicForm(RootModel[dict[str, float]]):
    """Mean duration of named actions in seconds."""

    model_config = ROOT_RULES
    root: Annotated[dict[str, float], Field(min_length=1)]

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.MaxAvgDurationPerAtomic(self.root)


class OutliersForm(Form):
    """Maximum number of iterations far above the mean."""

    max: Annotated[int, Field(ge=0), Whole] = Field(0, description="Maximum number.")
    min_iterations: Annotated[int, Field(ge=3), Whole] = Field(
        3, description="Iterations before the first outlier."
    )
    sigmas: Annotated[float, Field(gt=0)] = Field(3.0, description="Number of standard deviations.")

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.Outliers(self.max, self.min_iterations, self.sigmas)


class PerformanceDegradationForm(Form):
    """Maximum slowdown of the slowest iteration compared with the fastest."""

    max_degradation: Annotated[float, Field(ge=0)] = Field(description="Maximum in percent.")

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.PerformanceDegradation(self.max_degradation)


class MaxPercentilesForm(RootModel[dict[str, float]]):
    """Percentile ("p99") to seconds, over successful iterations. Not in Rally."""

    model_config = ROOT_RULES
    root: Annotated[
        dict[Annotated[str, Field(pattern=r"^p\d{1,2}(\.\d+)?$")], PositiveSeconds],
        Field(min_length=1),
    ]

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.MaxPercentiles({float(name[1:]): most for name, most in self.root.items()})


class MinThroughputForm(RootModel[Annotated[float, Field(gt=0)]]):
    """Successful iterations per second. Not in Rally."""

    model_config = ROOT_RULES

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.MinThroughput(self.root)


class MinIterationsForm(RootModel[Annotated[int, Field(ge=1)]]):
    """Minimum number of successful iterations. Not in Rally."""

    model_config = ROOT_RULES

    def to_model(self) -> criteria.SlaRule:
        """Return the rule."""
        return criteria.MinIterations(self.root)


SlaForm = (
    FailureRateForm
    | MaxSecondsPerIterationForm
    | MaxAvgDurationForm
    | MaxAvgDurationPerAtomicForm
    | OutliersForm
    | PerformanceDegradationForm
    | MaxPercentilesForm
    | MinThroughputForm
    | MinIterationsForm
)

SLAS: dict[str, type[SlaForm]] = {
    "failure_rate": FailureRateForm,
    "max_seconds_per_iteration": MaxSecondsPerIterationForm,
    "max_avg_duration": MaxAvgDurationForm,
    "max_avg_duration_per_atomic": MaxAvgDurationPerAtomicForm,
    "outliers": OutliersForm,
    "performance_degradation": PerformanceDegradationForm,
    "max_percentiles": MaxPercentilesForm,
    "min_throughput": MinThroughputForm,
    "min_iterations": MinIterationsForm,
}
