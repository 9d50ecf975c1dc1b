"""How long parts take."""

from collections.abc import Mapping

from verification.part import Part


def expected_s(part: Part, measured_s: Mapping[str, float]) -> float:
    """Return how long a part took last, or about how long it takes."""
    return measured_s.get(part.name, part.about_s)


def shown(seconds: float) -> str:
    """Return a duration in one unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
