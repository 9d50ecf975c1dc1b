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
from loadstone.audit.rule import Severity
from loadstone.audit.views import browbeat, fix_playbook, sarif, table, textfile
from loadstone.audit.views import junit as audit_junit
from loadstone.audit.views import markdown as audit_markdown
from loadstone.compare import show as comparison
from loadstone.report import html, junit, openmetrics, terminal
from loadstone.report.data import as_data
from loadstone.study import markdown as study_markdown
from loadstone.study import page as study_page
from loadstone.study import show as study_table

RUNS = made_runs.runs()
COMPARED = made_runs.compared()
STUDY = made_runs.study()
AUDIT = made_runs.audit()
# A histogram has hundreds of lines, which test_openmetrics.py reads.
WITHOUT_BUCKETS = partial(re.sub, r"(?m)^\w+_bucket\{.*\n", "")


def drawn(draw: Callable[[Console], None]) -> str:
    """Return what is printed on a terminal of 100 columns."""
    file = io.StringIO()
    draw(Console(file=file, width=100, highlight=False, markup=False))
    return file.getvalue()


def shown(run: object) -> str:
    def draw(console: Console) -> None:
        terminal.show(run, console)
        terminal.show_environment(run, console)

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
        "comparison": drawn(lambda console: comparison.show(COMPARED, console)),
        "study": drawn(lambda console: study_table.print_results(*STUDY, console)),
        "study plan": drawn(lambda console: study_table.plan(STUDY[0].begun.study(), 5, console)),
        "audit": drawn(lambda console: table.render(AUDIT, console, all_states=True)),
    }
    golden("terminal.txt", {kind: shown(run) for kind, run in RUNS.items()} | others)


def test_json(golden: Golden) -> None:
    others = {
        "comparison": comparison.as_data(COMPARED),
        "study": study_table.as_data(*STUDY),
        "audit": audit_data.as_tree(AUDIT, Severity.CRITICAL, 1),
    }
    data = {kind: as_data(run) for kind, run in RUNS.items()} | others
    golden("json.txt", {kind: as_json(one) for kind, one in data.items()})


def test_html(golden: Golden) -> None:
    pages = {kind: html.render(run, made_runs.samples_of) for kind, run in RUNS.items()}
    pages["study"] = study_page.render(*STUDY)
    golden("html.txt", {kind: words(page) for kind, page in pages.items()})


def test_junit(golden: Golden) -> None:
    others = {"comparison": comparison.junit(COMPARED), "audit": audit_junit.render(AUDIT)}
    documents = {kind: junit.render(run) for kind, run in RUNS.items()} | others
    golden("junit.txt", {kind: one.replace("><", ">\n<") for kind, one in documents.items()})


def test_markdown(golden: Golden) -> None:
    others = {
        "comparison": comparison.markdown(COMPARED),
        "study": study_markdown.render(*STUDY),
        "audit": audit_markdown.render(AUDIT),
    }
    golden("markdown.txt", others)


def test_openmetrics(golden: Golden) -> None:
    kinds = ("bottleneck", "task", "fault")
    texts = {kind: openmetrics.render(RUNS[kind]) for kind in kinds}
    texts["audit"] = textfile.render(AUDIT)
    golden("openmetrics.txt", {kind: WITHOUT_BUCKETS(text) for kind, text in texts.items()})


def test_other_views_of_an_audit(golden: Golden) -> None:
    views = {"Browbeat": browbeat, "Ansible": fix_playbook, "SARIF": sarif}
    golden("audit.txt", {name: view.render(AUDIT) for name, view in views.items()})
