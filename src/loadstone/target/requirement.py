"""A requirement that `loadstone doctor` checks, of this machine or of a target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement and whether it is met; `mend` says what to do if it is not."""

    name: str
    is_there: bool
    found: str
    mend: str = ""
    is_needed: bool = True  # without it, nothing can be measured
