"""Data that are read from files with a fixed set of fields."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that refuses unknown fields and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
