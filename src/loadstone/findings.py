"""Findings: statements with their evidence, from the audit and from the analysis of load."""

from dataclasses import dataclass
from enum import StrEnum


class Confidence(StrEnum):
    """What a finding rests on."""

    MEASURED = "measured"  # by Loadstone, in the study that the finding names
    DOCUMENTED = "documented"  # by the software's own documentation or a published case
    PROPOSED = "proposed"  # a threshold of ours that no measurement has confirmed


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that a finding rests on."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement with its evidence, and what to try."""

    id: str
    sentence: str
    evidence: tuple[Evidence, ...]
    confidence: Confidence
    advice: str


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A setting that costs performance, as a run keeps it."""

    rule: str
    severity: str  # "critical", "warning", "info"
    sentence: str
    advice: str
