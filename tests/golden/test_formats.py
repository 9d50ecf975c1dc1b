"""What each format shows of each kind of result: one golden file per format."""

import io
import json
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser

import made_runs
from golden import Golden
from rich.console import Console

from loadstone.audit import data as audit_data
from loadstone.audit.views import browbeat, fix_playbook, sarif, table, textfile
from loadstone.audit.views import junit as audit_junit
from loadstone.audit.views import markdown as audit_markdown
from loadstone.compare.section import report_of as report_of_comparison
from loadstone.diagnosis.finding import Severity
from loadstone.report import html, junit, markdown, openmetrics, terminal
from loadstone.report.data import as_data
from loadstone.report.section import Report
from loadstone.report.sections.run import report_of
from loadstone.study import show as study_plan
from loadstone.study.section import report_of as report_of_study

RUNS = made_runs.runs()
COMPARED = made_runs.compared()
STUDY = made_runs.study()
AUDIT = made_runs.audit()
REPORTS = {kind: report_of(run, made_runs.samples_of) for kind, run in RUNS.items()} | {
    "comparison": report_of_comparison(COMPARED),
    "study": report_of_study(*STUDY),
}
# A histogram has hundreds of lines, which test_openmetrics.py reads.
WITHOUT_BUCKETS = partial(re.sub, r"(?m)^\w+_bucket\{.*\n", "")


def drawn(draw: Callable[[Console], None]) -> str:
    """Return what is printed on a terminal of 100 columns."""
    file = io.StringIO()
    draw(Console(file=file, width=100, highlight=False, markup=False))
    return file.getvalue()


def shown(report: Report) -> str:
    def draw(console: Console) -> None:
        terminal.show(report, console)
        console.print("-- in full --")
        terminal.show_in_full(report, console)

    return drawn(draw)


class Words(HTMLParser):
    """The text of a page, a line for each element; of drawings, their descriptions."""

    BLIND = ("script", "style", "svg")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.inside = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.lines += [
            f"[{name}] {value}" for name, value in attrs if name in ("aria-label", "title")
        ]
        self.inside += tag in self.BLIND

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in self.BLIND

    def handle_data(self, data: str) -> None:
        if not self.inside and (text := re.sub(r"\s+", " ", data).strip()):
            self.lines.append(text)


def words(page: str) -> str:
    return "\n".join(Words(page).lines)


def as_json(data: object) -> str:
    return json.dumps(data, indent=1, allow_nan=False)


def test_terminal(golden: Golden) -> None:
    others = {
        "study plan": drawn(lambda console: study_plan.plan(STUDY[0].begun.study(), 5, console)),
        "audit": drawn(lambda console: table.render(AUDIT, console, all_states=True)),
    }
    golden("terminal.txt", {kind: shown(one) for kind, one in REPORTS.items()} | others)


def test_json(golden: Golden) -> None:
    data = {kind: as_data(one) for kind, one in REPORTS.items()}
    data["audit"] = audit_data.as_tree(AUDIT, Severity.CRITICAL, 1)
    golden("json.txt", {kind: as_json(one) for kind, one in data.items()})


def test_html(golden: Golden) -> None:
    golden("html.txt", {kind: words(html.render(one)) for kind, one in REPORTS.items()})


def test_junit(golden: Golden) -> None:
    documents = {kind: junit.render(one) for kind, one in REPORTS.items()}
    documents["audit"] = audit_junit.render(AUDIT)
    golden("junit.txt", {kind: one.replace("><", ">\n<") for kind, one in documents.items()})


def test_markdown(golden: Golden) -> None:
    texts = {kind: markdown.render(one) for kind, one in REPORTS.items()}
    golden("markdown.txt", texts | {"audit": audit_markdown.render(AUDIT)})


def test_openmetrics(golden: Golden) -> None:
    kinds = ("bottleneck", "task", "fault")
    texts = {kind: openmetrics.render(RUNS[kind]) for kind in kinds}
    texts["audit"] = textfile.render(AUDIT)
    golden("openmetrics.txt", {kind: WITHOUT_BUCKETS(text) for kind, text in texts.items()})


def test_other_views_of_an_audit(golden: Golden) -> None:
    views = {"Browbeat": browbeat, "Ansible": fix_playbook, "SARIF": sarif}
    golden("audit.txt", {name: view.render(AUDIT) for name, view in views.items()})
