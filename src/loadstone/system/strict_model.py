"""Data that are read from files with a fixed set of fields."""

from pydantic import BaseModel, ConfigDict, ValidationError


class StrictModel(BaseModel):
    """A model that refuses unknown fields and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def mistake(model: type[StrictModel], wrong: ValidationError) -> str:
    """Return the first mistake in words, without the values: they may be secrets."""
    first = wrong.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "missing":
            return f"{field} is missing"
        case "extra_forbidden" if len(first["loc"]) == 1:
            return f"{field} is not known; the fields are {', '.join(model.model_fields)}"
        case "extra_forbidden":
            return f"{field} is not known"
        case "string_too_short":
            return f"{field} must not be empty"
        case "string_type" | "path_type":
            return f"{field} must be text"
        case _:
            return f"{field}: {first['msg'].removeprefix('Value error, ')}"
