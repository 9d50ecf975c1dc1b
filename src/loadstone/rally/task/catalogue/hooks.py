"""Hooks: actions during the load, and their triggers."""

import shlex
from typing import Annotated, Literal

from pydantic import Field, RootModel, ValidationInfo, field_validator

from loadstone.errors import InvalidInput
from loadstone.faults.sentence import read
from loadstone.plan.hooks import Event, FaultInjection, Periodic, SysCall
from loadstone.rally.task.catalogue.form import ROOT_RULES, Count, Form

Moment = Annotated[int, Field(ge=0)]
Unit = Annotated[
    Literal["time", "iteration"], Field(description="Seconds of load, or iterations from 1.")
]


class SysCallForm(RootModel[str]):
    """A command line. It is split like in a shell, but run without one."""

    model_config = ROOT_RULES

    @field_validator("root")
    @classmethod
    def _can_be_split(cls, value: str) -> str:
        try:
            command = shlex.split(value)
        except ValueError as wrong:
            raise ValueError(f"cannot be split into words: {wrong}") from None
        if not command:
            raise ValueError("names no command")
        return value

    def to_model(self) -> SysCall:
        """Return the action."""
        return SysCall(tuple(shlex.split(self.root)))


class FaultInjectionForm(RootModel[str | dict[str, str | bool]]):
    """A sentence of os-faults, or {action: SENTENCE} as its own hook for Rally takes it."""

    model_config = ROOT_RULES

    @field_validator("root")
    @classmethod
    def _is_a_fault(cls, value: str | dict[str, str | bool]) -> str | dict[str, str | bool]:
        if isinstance(value, dict):
            unknown = sorted(set(value) - {"action", "verify"})
            if unknown or not isinstance(value.get("action"), str):
                raise ValueError("must be a sentence, or {action: SENTENCE}")
        try:
            read(_sentence(value))
        except InvalidInput as wrong:
            raise ValueError(str(wrong)) from None
        return value

    def to_model(self) -> FaultInjection:
        """Return the action."""
        return FaultInjection(_sentence(self.root))


def _sentence(value: str | dict[str, str | bool]) -> str:
    return str(value["action"]) if isinstance(value, dict) else value


class EventForm(Form):
    """Triggers at given times or iterations."""

    unit: Unit
    at: Annotated[list[Moment], Field(min_length=1)] = Field(description="Seconds or iterations.")

    @field_validator("at")
    @classmethod
    def _differ(cls, value: list[int], info: ValidationInfo) -> list[int]:
        if len(set(value)) < len(value):
            raise ValueError("names a moment twice")
        if info.data.get("unit") == "iteration" and min(value) < 1:
            raise ValueError("iterations are counted from 1")
        return value

    def to_model(self) -> Event:
        """Return the trigger."""
        return Event(self.unit, tuple(self.at))


class PeriodicForm(Form):
    """Triggers repeatedly."""

    unit: Unit
    step: Count = Field(description="Interval between two runs.")
    start: Moment = Field(0, description="First run; default: 0 s or iteration 1.")
    end: Count = Field(0, description="Last possible run; default: the end of the load.")

    @field_validator("start")
    @classmethod
    def _is_an_iteration(cls, value: int, info: ValidationInfo) -> int:
        if value == 0 and info.data.get("unit") == "iteration":
            raise ValueError("iterations are counted from 1")
        return value

    def to_model(self) -> Periodic:
        """Return the trigger."""
        first = 0 if self.unit == "time" else 1
        start = self.start if "start" in self.model_fields_set else first
        return Periodic(self.unit, self.step, start, self.end or None)


TriggerForm = EventForm | PeriodicForm

ACTIONS: dict[str, type[SysCallForm] | type[FaultInjectionForm]] = {
    "fault_injection": FaultInjectionForm,
    "sys_call": SysCallForm,
}
TRIGGERS: dict[str, type[TriggerForm]] = {"event": EventForm, "periodic": PeriodicForm}
