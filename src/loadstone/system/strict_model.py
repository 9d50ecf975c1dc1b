"""Data that are read from files with a fixed set of fields."""

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from loadstone.system.yaml_file import YamlFile


class StrictModel(BaseModel):
    """A model that refuses unknown fields and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def mistake(model: type[StrictModel], file: YamlFile, wrong: ValidationError) -> str:
    """Return the first mistake with its line, without the values: they may be secrets."""
    first = wrong.errors(include_input=False, include_url=False)[0]
    return f"{file.place(*first['loc'])}: {_words(model, first)}"


def _words(model: type[StrictModel], first: ErrorDetails) -> str:
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
