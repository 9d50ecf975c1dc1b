"""A comparison as a table, data, Markdown and JUnit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone.compare.answer import Answer, Criteria, MetricComparison
from loadstone.compare.pairs import GuardOutcome, verdict
from loadstone.report import figures
from loadstone.report.comparison import ComparedMetric, ComparisonSection
from loadstone.report.junit import clean
from loadstone.report.settings import SettingDifference

SHARES = (0.01, 0.02, 0.05, 0.1)  # differences for which an unknown answer lists the needed pairs
APART = (
    "A and B were measured at different times: a machine that drifts makes differences of its own. "
    "`loadstone compare --lab A --lab B` measures them in pairs."
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with everything that its views show."""

    names: tuple[str, str]
    settings: tuple[SettingDifference, ...]
    metrics: tuple[tuple[str, tuple[MetricComparison, ...]], ...]  # by scenario
    criteria: Criteria
    is_paired: bool
    run_ids: tuple[str, ...] = ()
    most_slower: float | None = None  # limit of --fail-if-slower; None: no limit
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> GuardOutcome | None:
        """Result of --fail-if-slower, over the primary metrics of all scenarios."""
        if self.most_slower is None:
            return None
        found = [verdict(rows[0], self.most_slower) for _, rows in self.metrics if rows]
        if GuardOutcome.FAILED in found:
            return GuardOutcome.FAILED
        if not found or GuardOutcome.UNDECIDED in found:
            return GuardOutcome.UNDECIDED
        return GuardOutcome.PASSED


def show(compared: Compared, console: Console) -> None:
    """Print the settings that differ, the metrics, and the pairs that an unknown answer needs."""
    a, b = compared.names
    if compared.settings:
        console.print(_settings_table(compared))
    else:
        console.print(f"{a} and {b} do not differ in any setting that is known.")
    console.print(_metrics_table(compared))
    for line in (*sentences(compared), *compared.notes):
        console.print(line, soft_wrap=True)
    if compared.run_ids:
        names = compared.run_ids[:1] if compared.is_paired else compared.run_ids
        output = "" if compared.is_paired else " -o FILE"
        console.print(f"Page: loadstone report {' '.join(names)}{output}", soft_wrap=True)


def section(compared: Compared) -> ComparisonSection:
    """Return the comparison as a page begins with it."""
    return ComparisonSection(
        names=compared.names,
        headlines=tuple(_headline(title, rows[0]) for title, rows in compared.metrics if rows),
        metrics=tuple(
            ComparedMetric(title, *_cells(row)) for title, rows in compared.metrics for row in rows
        ),
        settings=compared.settings,
        notes=(*sentences(compared), *compared.notes),
    )


def _headline(title: str, row: MetricComparison) -> str:
    within = f"95 %: {_interval(row)}" if math.isfinite(row.high) else "no interval"
    return f"{title}, {row.metric.name}: B / A = {row.ratio:.3f} ({within}), {row.answer.value}"


def sentences(compared: Compared) -> Iterator[str]:
    """Yield the sentences below the table."""
    for title, rows in compared.metrics:
        if rows:
            yield f"{title}: {_sentence(rows[0], compared)}"
    if compared.outcome is not None and compared.most_slower is not None:
        share = figures.percent(compared.most_slower)
        yield f"guard: {compared.outcome.value} by more than {share}"
    if not compared.is_paired:
        yield APART


def as_data(compared: Compared) -> dict[str, object]:
    """Return the comparison as JSON values."""
    return {
        "runs": list(compared.run_ids),
        "a": compared.names[0],
        "b": compared.names[1],
        "interleaved": compared.is_paired,
        "settings": [
            {"name": one.name, "a": one.values[0], "b": one.values[1]} for one in compared.settings
        ],
        "metrics": {
            title: {row.metric.name: _row_data(row) for row in rows}
            for title, rows in compared.metrics
        },
        "same_within": compared.criteria.same_within,
        "notes": list(compared.notes),
        "guard": None
        if compared.outcome is None
        else {"most_slower": compared.most_slower, "outcome": compared.outcome.value},
    }


def markdown(compared: Compared) -> str:
    """Return the comparison for the comment on a pull request."""
    a, b = compared.names
    lines = [f"### {b} compared with {a}", ""]
    if compared.settings:
        lines += _markdown_table(
            ("setting", a, b),
            [(one.name, *(value or "-" for value in one.values)) for one in compared.settings],
        )
    for title, rows in compared.metrics:
        lines += [f"**{title}**", ""]
        lines += _markdown_table(("metric", a, b, "B / A", "95 %", "answer"), map(_cells, rows))
    lines += [f"{line}\n" for line in sentences(compared)]
    return "\n".join(lines).rstrip() + "\n"


def junit(compared: Compared) -> str:
    """Return a test case for each scenario: a failure if B is slower."""
    suite = Xml.Element("testsuite", name="loadstone compare")
    counts = {"failures": 0, "errors": 0}
    for title, rows in compared.metrics:
        case = Xml.SubElement(suite, "testcase", classname="loadstone.compare", name=clean(title))
        kind = _junit_kind(rows, compared)
        if kind is not None:
            counts[f"{kind}s"] += 1
            message = _sentence(rows[0], compared) if rows else "nothing was measured"
            Xml.SubElement(case, kind, type="comparison", message=clean(message))
        text = "\n".join("  ".join(_cells(row)) for row in rows)
        Xml.SubElement(case, "system-out").text = clean(text)
    totals = {"tests": str(len(suite)), **{name: str(count) for name, count in counts.items()}}
    suite.attrib |= totals
    root = Xml.Element("testsuites", totals)
    root.append(suite)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_kind(rows: Sequence[MetricComparison], compared: Compared) -> str | None:
    if not rows:
        return "error"
    if compared.most_slower is None:
        return "failure" if rows[0].answer is Answer.SLOWER else None
    found = verdict(rows[0], compared.most_slower)
    return {
        GuardOutcome.PASSED: None,
        GuardOutcome.FAILED: "failure",
        GuardOutcome.UNDECIDED: "error",
    }[found]


def _settings_table(compared: Compared) -> Table:
    table = Table("setting", *compared.names, box=SIMPLE_HEAD)
    for one in compared.settings:
        table.add_row(one.name, *(value or figures.MISSING for value in one.values))
    return table


def _metrics_table(compared: Compared) -> Table:
    table = Table("scenario", "metric", box=SIMPLE_HEAD)
    for head in (*compared.names, "B / A", "95 %"):
        table.add_column(head, justify="right")
    table.add_column("answer")
    for title, rows in compared.metrics:
        for number, row in enumerate(rows):
            table.add_row(title if number == 0 else "", *_cells(row))
    return table


def _cells(row: MetricComparison) -> tuple[str, str, str, str, str, str]:
    return (
        row.metric.name,
        _value(row, row.a),
        _value(row, row.b),
        f"{row.ratio:.3f}",
        _interval(row),
        row.answer.value,
    )


def _interval(row: MetricComparison) -> str:
    if not math.isfinite(row.high):
        return figures.MISSING
    return f"{row.low:.3f} to {row.high:.3f}"


def _value(row: MetricComparison, value: float) -> str:
    if row.metric.unit == "s":
        return figures.milliseconds(value * 1e3)
    return f"{figures.rate(value)}{row.metric.unit}"


def _sentence(row: MetricComparison, compared: Compared) -> str:
    """Return the answer of one metric in words."""
    names = dict(zip("ab", compared.names, strict=True))
    change = figures.percent(abs(row.ratio - 1))
    direction = "more" if row.ratio > 1 else "less"
    about = f"{row.metric.name} of {names['b']} is {change} {direction} than that of {names['a']}"
    within = f"(95 %: {_interval(row)} times)" if math.isfinite(row.high) else "(no interval)"
    match row.answer:
        case Answer.FASTER | Answer.SLOWER:
            return f"{row.answer.value}: {about} {within}"
        case Answer.SAME:
            margin = figures.percent(compared.criteria.same_within)
            return f"the same within {margin}: {about} {within}"
        case Answer.UNKNOWN:
            return f"not enough evidence: {about} {within}{_needed(row, compared.criteria)}"


def _needed(row: MetricComparison, criteria: Criteria) -> str:
    needs = [(share, row.pairs_to_find(share, criteria.alpha)) for share in SHARES]
    known = [f"{figures.percent(share)} takes {count} pairs" for share, count in needs if count]
    return f"; to find a difference of {', '.join(known)}" if known else ""


def _row_data(row: MetricComparison) -> dict[str, object]:
    return {
        "unit": row.metric.unit,
        "a": row.a,
        "b": row.b,
        "ratio": row.ratio,
        "low": row.low if math.isfinite(row.high) else None,
        "high": row.high if math.isfinite(row.high) else None,
        "pairs": row.pairs,
        "answer": row.answer.value,
    }


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(heads), line(["---"] * len(heads)), *map(line, rows), ""]
