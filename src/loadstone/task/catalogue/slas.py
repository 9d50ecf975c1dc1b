"""SLA rules: what must hold."""

from typing import Annotated

from pydantic import Field, RootModel, model_validator

from loadstone.task import model
from loadstone.task.catalogue.form import ROOT_RULES, Form, Percent, PositiveSeconds


class FailureRateForm(Form):
    """Share of failed iterations, in percent."""

    min: Percent = Field(0, description="At least so many percent fail.")
    max: Percent = Field(100, description="At most so many percent fail.")

    @model_validator(mode="after")
    def _says_something(self) -> "FailureRateForm":
        if not self.model_fields_set:
            raise ValueError("needs min, max or both")
        return self

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.FailureRate(self.min, self.max)


class SecondsForm(RootModel[PositiveSeconds]):
    """A number of seconds, more than 0."""

    model_config = ROOT_RULES


class MaxSecondsPerIterationForm(SecondsForm):
    """Longest iteration, in seconds; failed ones count."""

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.MaxSecondsPerIteration(self.root)


class MaxAvgDurationForm(SecondsForm):
    """Mean duration of successful iterations, in seconds."""

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.MaxAvgDuration(self.root)


class MaxAvgDurationPerAtomicForm(RootModel[dict[str, float]]):
    """Mean duration of named actions, in seconds."""

    model_config = ROOT_RULES
    root: Annotated[dict[str, float], Field(min_length=1)]

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.MaxAvgDurationPerAtomic(self.root)


class OutliersForm(Form):
    """How many iterations may be far above the mean."""

    max: Annotated[int, Field(ge=0)] = Field(0, description="So many outliers at most.")
    min_iterations: Annotated[int, Field(ge=3)] = Field(3, description="None before so many.")
    sigmas: Annotated[float, Field(gt=0)] = Field(3.0, description="Standard deviations.")

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.Outliers(self.max, self.min_iterations, self.sigmas)


class PerformanceDegradationForm(Form):
    """How much slower than the fastest iteration the slowest may be."""

    max_degradation: Annotated[float, Field(ge=0)] = Field(description="In percent.")

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.PerformanceDegradation(self.max_degradation)


class MaxPercentilesForm(RootModel[dict[str, float]]):
    """Percentile ("p99") to seconds, over successful iterations. Not in Rally."""

    model_config = ROOT_RULES
    root: Annotated[
        dict[Annotated[str, Field(pattern=r"^p\d{1,2}(\.\d+)?$")], PositiveSeconds],
        Field(min_length=1),
    ]

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.MaxPercentiles({float(name[1:]): most for name, most in self.root.items()})


class MinThroughputForm(RootModel[Annotated[float, Field(gt=0)]]):
    """Successful iterations per second. Not in Rally."""

    model_config = ROOT_RULES

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.MinThroughput(self.root)


class MinIterationsForm(RootModel[Annotated[int, Field(ge=1)]]):
    """Successful iterations. Not in Rally."""

    model_config = ROOT_RULES

    def made(self) -> model.SlaRule:
        """Give the rule."""
        return model.MinIterations(self.root)


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
