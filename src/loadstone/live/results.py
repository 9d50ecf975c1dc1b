"""What has ended, as a report, while the rest is still measured."""

from dataclasses import replace

from loadstone.live.now import UNDER_WAY
from loadstone.report.section import Answer, Report, Section
from loadstone.report.sections.overview import overview
from loadstone.result.model import Run

TRIALS = "Trials"


def so_far(run: Run, report: Report) -> Report:
    """Return the report of a run, in which measurements under way claim no result yet."""
    if run.status != "running":
        return report
    sections = tuple(
        _under_way(section) if measurement.status == "running" else section
        for measurement, section in zip(run.measurements, report.sections, strict=True)
    )
    return replace(
        report,
        title="Results so far",
        sections=sections,
        overview=overview(sections) if len(sections) > 1 else None,
        steps=(),
        settings=(),
        words=(),
    )


def _under_way(section: Section) -> Section:
    """Return a section without an answer, its trials unfolded."""
    return replace(
        section,
        answer=Answer("", "under way", "", "Under way; these are its trials so far."),
        certainty=UNDER_WAY,
        statements=(),
        steps=(),
        method=(),
        tables=tuple(
            replace(table, is_primary=table.is_primary or table.title == TRIALS)
            for table in section.tables
        ),
        parts=tuple(map(_under_way, section.parts)),
    )
