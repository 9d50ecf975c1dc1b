"""Runners: the load of a workload."""

from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from loadstone.rally.runner import stairs
from loadstone.rally.task.catalogue.form import RULES, Count, Form, Seconds, Whole
from loadstone.rally.task.model import (
    MOST_CONCURRENCY,
    Constant,
    ConstantForDuration,
    Ramp,
    Rps,
    Runner,
    Serial,
)

YEAR_S = 365 * 86_400  # the longest load of the engine, and the longest time-out
Times = Annotated[Count, Field(le=2**32 - 1)]  # the engine numbers iterations with four bytes
Concurrency = Annotated[Count, Field(le=MOST_CONCURRENCY)]
Timeout = Annotated[
    Seconds, Field(le=YEAR_S, description="Seconds that an iteration may take; 0: no limit.")
]
Cpus = Annotated[Count, Field(description="Rally's number of processes; the engine needs one.")]


class ConstantForm(Form):
    """A number of iterations at a fixed concurrency."""

    times: Times = Field(1, description="Total number of iterations.")
    concurrency: Concurrency = Field(1, description="Iterations in flight, at most `times`.")
    timeout: Timeout = 0
    max_cpu_count: Cpus = 1

    @field_validator("concurrency")
    @classmethod
    def _at_most_times(cls, value: int, info: ValidationInfo) -> int:
        times = info.data.get("times", value)
        if value > times:
            raise ValueError(f"must be at most times, which is {times}")
        return value

    def to_model(self) -> Runner:
        """Return the runner."""
        return Constant(self.times, self.concurrency, self.timeout or None)


class ConstantForDurationForm(Form):
    """Iterations at a fixed concurrency for a duration."""

    duration: Annotated[Seconds, Field(le=YEAR_S)] = Field(
        description="Duration of the load in seconds; 0: one iteration for each slot."
    )
    concurrency: Concurrency = Field(1, description="Iterations in flight.")
    timeout: Annotated[float, Field(ge=1, le=YEAR_S)] = Field(
        600, description="Time limit of an iteration in seconds."
    )

    def to_model(self) -> Runner:
        """Return the runner."""
        return ConstantForDuration(self.duration, self.concurrency, self.timeout)


Rate = Annotated[float, Field(ge=1)]


class RampForm(Form):
    """A rate that increases in steps."""

    start: Rate = Field(description="Initial rate in iterations per second.")
    end: Rate = Field(description="Final rate, at least `start`.")
    step: Rate = Field(description="Increase of the rate in each step.")
    duration: Rate = Field(1, description="Duration of a step in seconds.")

    @field_validator("end")
    @classmethod
    def _not_below_start(cls, value: float, info: ValidationInfo) -> float:
        start = info.data.get("start", value)
        if value < start:
            raise ValueError(f"must not be less than start, which is {start:g}")
        return value

    def to_model(self) -> Ramp:
        """Return the rate."""
        return Ramp(self.start, self.end, self.step, self.duration)


def _form_of_rate(value: Any) -> str:
    return "ramp" if isinstance(value, dict | RampForm) else "number"


class RpsForm(Form):
    """A fixed number of iterations per second, regardless of response times."""

    times: Annotated[Times, Whole] = Field(description="Total number of iterations.")
    rps: Annotated[
        Annotated[Annotated[float, Field(gt=0)], Tag("number")] | Annotated[RampForm, Tag("ramp")],
        Discriminator(_form_of_rate),
    ] = Field(description="Iterations per second, or a ramp.")
    timeout: Timeout = 0
    max_concurrency: Annotated[Count, Whole] = Field(
        0, description="Maximum in flight; by default no limit."
    )
    max_cpu_count: Annotated[Cpus, Whole] = 1

    @model_validator(mode="after")
    def _ends_within_a_year(self) -> "RpsForm":
        rate = self.rps
        if isinstance(rate, RampForm):
            lasts_s = sum(stage.duration_s for stage in stairs(rate.to_model(), self.times))
        else:
            lasts_s = self.times / rate
        if lasts_s > YEAR_S:
            raise ValueError("would take more than a year for its times")
        return self

    def to_model(self) -> Runner:
        """Return the runner."""
        rate = self.rps.to_model() if isinstance(self.rps, RampForm) else self.rps
        cpus = self.max_cpu_count if "max_cpu_count" in self.model_fields_set else None
        return Rps(self.times, rate, self.timeout or None, self.max_concurrency or None, cpus)


class SerialForm(Form):
    """One iteration after the other; settings of other runners are accepted and ignored."""

    model_config = ConfigDict({**RULES, "extra": "allow"})

    times: Times = Field(1, description="Total number of iterations.")

    def to_model(self) -> Runner:
        """Return the runner."""
        return Serial(self.times)


RunnerForm = ConstantForm | ConstantForDurationForm | RpsForm | SerialForm

RUNNERS: dict[str, type[RunnerForm]] = {
    "constant": ConstantForm,
    "constant_for_duration": ConstantForDurationForm,
    "rps": RpsForm,
    "serial": SerialForm,
}
