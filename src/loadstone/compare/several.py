"""Three targets or more: each is compared with the first, one after the other.

Each comparison has its share of the error rate while it is measured (Bonferroni). At the end all
of them are answered together (Holm), which can only give more answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadstone.compare.answer import Criteria, decided
from loadstone.compare.section import Compared, report_of, worst_code
from loadstone.report.section import Report, Section
from loadstone.report.sections.overview import overview


def share_of(criteria: Criteria, comparisons: int) -> Criteria:
    """Return the criteria of one of so many comparisons."""
    return replace(criteria, alpha=criteria.alpha / comparisons)


def together(found: Sequence[Compared], criteria: Criteria) -> tuple[Compared, ...]:
    """Return the comparisons with answers that all hold together."""
    rows = [row for one in found for _, rows in one.metrics for row in rows]
    answered = iter(decided(rows, criteria))
    return tuple(
        replace(
            one,
            criteria=criteria,
            metrics=tuple(
                (title, tuple(next(answered) for _ in rows)) for title, rows in one.metrics
            ),
        )
        for one in found
    )


def report_of_several(found: Sequence[Compared], store: str = "") -> Report:
    """Return comparisons with the same A as one report; that of a single one is its own."""
    reports = [report_of(one, store) for one in found]
    if len(found) == 1:
        return reports[0]
    named = [(one.names[1], report) for one, report in zip(found, reports, strict=True)]
    sections = tuple(_sections(named))
    return replace(
        reports[0],
        title="; ".join(report.title for report in reports),
        subject=f"A: {found[0].names[0]}; B: {', '.join(name for name, _ in named)}",
        sections=sections,
        overview=overview(sections),
        exit_code=worst_code([report.exit_code for report in reports]),
        statements=tuple(
            replace(one, text=f"{name}: {one.text}")
            for name, report in named
            for one in report.statements
        ),
        tables=tuple(
            replace(one, title=f"{name}: {one.title}")
            for name, report in named
            for one in report.tables
        ),
        page="; ".join(report.page for report in reports if report.page),
        data={**reports[0].data, "comparisons": [dict(report.data) for report in reports]},
    )


def _sections(named: Sequence[tuple[str, Report]]) -> Iterator[Section]:
    """Yield all sections with the name of their B and ids of their own."""
    both = [(name, section) for name, report in named for section in report.sections]
    for number, (name, one) in enumerate(both, 1):
        flame = replace(one.flame, id=f"{one.flame.id}-{number}") if one.flame else None
        title = f"{name}: {one.title}"
        data = {**one.data, "title": title}
        yield replace(one, id=f"compared-{number}", title=title, flame=flame, data=data)
