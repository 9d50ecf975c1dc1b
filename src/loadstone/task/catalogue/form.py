"""What a plugin's settings look like in a file."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel

# Rally's schemas take whole numbers where a number is wanted, and no texts, booleans or nulls.
RULES = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)
ROOT_RULES = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


class Form(BaseModel):
    """Settings that are a mapping of known keys."""

    model_config = RULES


class ListForm(RootModel[list[str]]):
    """Settings that are a list of words."""

    model_config = ROOT_RULES


Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
PositiveSeconds = Annotated[float, Field(gt=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
