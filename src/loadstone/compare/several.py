"""Three targets or more: each is compared with the first, one after the other.

Each comparison has its share of the error rate while it is measured (Bonferroni). At the end, the
share of a comparison whose metrics all differ passes to the others, which can only give more
answers (the graphical procedure of Bretz et al., Statistics in Medicine 28, 2009).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadstone.compare.answer import Criteria, MetricComparison, decided
from loadstone.compare.section import Compared, answer_code, guard_data, report_of, worst_code
from loadstone.report.section import Report, Section
from loadstone.report.sections.left import with_left
from loadstone.report.sections.overview import overview


def share_of(criteria: Criteria, comparisons: int) -> Criteria:
    """Return the criteria of one of so many comparisons."""
    return replace(criteria, alpha=criteria.alpha / comparisons)


def together(found: Sequence[Compared], criteria: Criteria) -> tuple[Compared, ...]:
    """Return the comparisons with answers that all hold together."""
    answers: dict[int, tuple[MetricComparison, ...]] = {}
    undecided = {
        place: rows
        for place, one in enumerate(found)
        if (rows := [row for _, of_metric in one.metrics for row in of_metric])
    }
    while undecided:
        share = share_of(criteria, len(undecided))
        answers |= {place: decided(rows, share) for place, rows in undecided.items()}
        decided_now = [place for place in undecided if _all_differ(answers[place])]
        if not decided_now:
            break
        for place in decided_now:
            del undecided[place]
    return tuple(
        _with_answers(one, criteria, answers.get(place, ())) for place, one in enumerate(found)
    )


def _all_differ(rows: Sequence[MetricComparison]) -> bool:
    return all(row.answer.is_difference for row in rows)


def _with_answers(
    compared: Compared, criteria: Criteria, answers: Sequence[MetricComparison]
) -> Compared:
    answered = iter(answers)
    # A larger share of the error rate does not change a difference that is known.
    metrics = tuple(
        (title, tuple(_kept(known, next(answered)) for known in rows))
        for title, rows in compared.metrics
    )
    return replace(compared, criteria=criteria, metrics=metrics)


def _kept(known: MetricComparison, answer: MetricComparison) -> MetricComparison:
    return known if known.answer.is_difference else answer


def report_of_several(found: Sequence[Compared], store: str = "") -> Report:
    """Return comparisons with the same A as one report; that of a single one is its own."""
    if len(found) == 1:
        return report_of(found[0], store)
    reports = [report_of(replace(one, left=()), store) for one in found]
    named = [(one.names[1], report) for one, report in zip(found, reports, strict=True)]
    sections = tuple(_sections(named))
    report = replace(
        reports[0],
        title="; ".join(report.title for report in reports),
        subject=f"A: {found[0].names[0]}; B: {', '.join(name for name, _ in named)}",
        sections=sections,
        overview=overview(sections),
        exit_code=worst_code([answer_code(one) for one in found]),
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
        data={
            **reports[0].data,
            "guard": guard_data(found),
            "comparisons": [
                {**report.data, "measurements": [dict(one.data) for one in report.sections]}
                for report in reports
            ],
        },
    )
    return with_left(report, [run_id for one in found for run_id in one.left], store)


def _sections(named: Sequence[tuple[str, Report]]) -> Iterator[Section]:
    """Yield all sections with the name of their B and ids of their own."""
    both = [(name, section) for name, report in named for section in report.sections]
    for number, (name, one) in enumerate(both, 1):
        flame = replace(one.flame, id=f"{one.flame.id}-{number}") if one.flame else None
        title = f"{name}: {one.title}"
        data = {**one.data, "title": title}
        yield replace(one, id=f"compared-{number}", title=title, flame=flame, data=data)
