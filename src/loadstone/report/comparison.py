"""A comparison of two runs, as a page shows it."""

from dataclasses import dataclass

from loadstone.report.settings import SettingDifference


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One metric of one scenario, formatted for display."""

    scenario: str
    metric: str
    a: str
    b: str
    ratio: str  # B / A
    interval: str
    answer: str


@dataclass(frozen=True, slots=True)
class ComparisonSection:
    """The answer, the figures behind it, and the settings that differ."""

    names: tuple[str, str]
    headlines: tuple[str, ...]  # the primary metric of each scenario
    metrics: tuple[ComparedMetric, ...]
    settings: tuple[SettingDifference, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The heading: the names of both runs."""
        return f"{self.names[1]} compared with {self.names[0]}"
