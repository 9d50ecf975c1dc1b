"""Findings of the audit and of the load analysis: statements with their evidence."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    """How much a finding, a statement or advice matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return 0 for info to 2 for critical."""
        return list(Severity).index(self)


class Confidence(StrEnum):
    """The basis of a finding."""

    MEASURED = "measured"  # by Loadstone, in the study that the finding names
    DOCUMENTED = "documented"  # by the software's own documentation or a published case
    PROPOSED = "proposed"  # a threshold of Loadstone, not confirmed by a measurement


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that supports a finding."""

    name: str
    value: str

    @classmethod
    def of(cls, name: str, value: float) -> Self:
        """Return a number with four digits, or with all of those before the point."""
        return cls(name, f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}")


def three_digits(value: float) -> str:
    """Return a number in a sentence: with three digits, or with all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement with its evidence and advice."""

    id: str
    sentence: str
    evidence: tuple[Evidence, ...]
    confidence: Confidence
    advice: str


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A setting that costs performance, as stored with a run."""

    rule: str
    severity: str  # "critical", "warning", "info"
    sentence: str
    advice: str
    is_provable: bool = False  # `loadstone audit prove` can measure what the advice gains
