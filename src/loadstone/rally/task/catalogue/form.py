"""Base classes for the settings of a plugin in a file."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel

# Rally's schemas accept integers where a number is expected, and no strings, booleans or nulls.
RULES = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)
ROOT_RULES = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


class Form(BaseModel):
    """Settings that are a mapping with known keys."""

    model_config = RULES


class ListForm(RootModel[list[str]]):
    """Settings that are a list of strings."""

    model_config = ROOT_RULES


Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
PositiveSeconds = Annotated[float, Field(gt=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
