"""Base classes for the settings of a plugin in a file."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, RootModel

# Rally's schemas accept integers where a number is expected, and no strings, booleans or nulls.
RULES = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)
ROOT_RULES = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


class Form(BaseModel):
    """Settings that are a mapping with known keys."""

    model_config = RULES


class ListForm(RootModel[list[str]]):
    """Settings that are a list of strings."""

    model_config = ROOT_RULES


def _reference(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("id"):
        return value
    if not value.get("name") and not value.get("regex"):
        raise ValueError("needs id, name or regex")
    if not value.get("name"):  # a name may be exact
        try:
            re.compile(str(value["regex"]))
        except re.error as wrong:
            raise ValueError(f"has an invalid regex: {wrong}") from None
    return value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Some of Rally's plugins also take 2.0 for 2 (JSON Schema 7); the others do not (Schema 4).
Whole = BeforeValidator(_whole)
# Of an image or a flavor.
Reference = Annotated[dict[str, Any], AfterValidator(_reference)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
PositiveSeconds = Annotated[float, Field(gt=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
