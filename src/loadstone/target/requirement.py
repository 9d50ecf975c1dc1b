"""What `loadstone doctor` says of one thing, of this machine or of a target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement and whether it is met; `mend` is the hint if not."""

    name: str
    is_there: bool
    found: str
    mend: str = ""
    is_needed: bool = True  # nothing works, or no measurement, without it
