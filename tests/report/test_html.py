import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from realistic import keystone

from loadstone.errors import EnvironmentUnusable
from loadstone.report import figures, html, words
from loadstone.search.model import Capacity

RESULT, SAMPLES = keystone()
KEPT = replace(
    RESULT,
    findings=tuple(
        replace(f, trials=tuple(replace(t, samples_file=f"{i}-{t.number}") for t in f.trials))
        for i, f in enumerate(RESULT.findings)
    ),
)


def samples_of(trial):
    if trial.samples_file is None:
        raise EnvironmentUnusable("kept without samples")
    index, number = trial.samples_file.split("-")
    return SAMPLES[int(index), int(number)]


CHARTS = 12  # six for each workload


class Balanced(HTMLParser):
    VOID = ("meta", "link", "br", "path", "rect", "circle")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def page(result=KEPT) -> str:
    return html.render(result, samples_of)


def words_of(text: str) -> str:
    bare = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", bare)))


def test_the_page_is_whole_and_asks_nothing_of_any_network():
    text = page()
    Balanced().feed(text)
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "default-src 'none'" in text
    assert "@import" not in text


def test_n_and_every_figure_of_every_trial_stand_in_the_page():
    text = words_of(page())
    for finding in KEPT.findings:
        assert words.headline(finding) in text
        for sentence in words.of(finding):
            assert sentence in text
        for trial in finding.trials:
            assert figures.plain_ms(trial.summary.latency.p99_ms) in text
            for reason in trial.verdict.reasons:
                assert reason in text


def test_the_environment_and_the_command_stand_in_the_page():
    text = words_of(page())
    for name, value in (*KEPT.environment.machine, *KEPT.environment.target):
        assert f"{name} {value}" in text
    assert KEPT.command in text


def test_each_chart_is_drawn_without_scripts_and_described():
    drawn = re.findall(r'<svg class="static".*?</svg>', page(), flags=re.DOTALL)
    assert len(drawn) == CHARTS
    for svg in drawn:
        assert 'role="img"' in svg
        assert re.search(r'aria-label="[^"]{30,}"', svg)
        assert "nan" not in svg.lower()


def test_what_a_service_is_called_cannot_become_part_of_the_page():
    evil = '</script><img src=x onerror="alert(1)">'
    odd = replace(
        KEPT,
        failure=evil,
        command=evil,
        environment=replace(KEPT.environment, target=(("release", evil), (evil, evil))),
        findings=tuple(replace(f, title=evil, notes=(evil,)) for f in KEPT.findings),
    )
    text = page(odd)
    assert "<img" not in text
    Balanced().feed(text)


@pytest.mark.parametrize(
    "capacity",
    [
        None,
        Capacity(None, None, None, 0.0),
        Capacity(None, 5.0, None, 0.0),
        Capacity(None, None, 5.0, 0.0),
        Capacity(5.0, 5.0, 5.0, 0.0),
    ],
)
def test_a_search_without_an_interval_still_gives_a_page(capacity):
    findings = tuple(replace(finding, capacity=capacity) for finding in KEPT.findings)
    Balanced().feed(page(replace(KEPT, findings=findings)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_interrupted_run_gives_a_page_of_what_it_has(count):
    findings = tuple(
        replace(finding, capacity=None, trials=finding.trials[:count]) for finding in KEPT.findings
    )
    text = words_of(page(replace(KEPT, status="interrupted", ended_at=None, findings=findings)))
    assert "This run is interrupted." in text
    assert "nan" not in text.lower().split()


def test_a_run_without_samples_gives_a_page_without_the_chart_of_each_request():
    text = page(RESULT)
    assert "Latency over time" not in text
    assert "Backlog over time" in text


def test_a_report_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "missing" / "report.html"
    with pytest.raises(EnvironmentUnusable, match=r"cannot write .*report\.html: No such"):
        html.write(KEPT, samples_of, path)


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentUnusable, match=r"cannot write .*file/report\.html: Not a"):
        html.write(KEPT, samples_of, tmp_path / "file" / "report.html")


def test_a_written_report_leaves_nothing_else(tmp_path):
    html.write(KEPT, samples_of, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
