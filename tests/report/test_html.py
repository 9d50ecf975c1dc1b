import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import made_runs
import made_workloads
import numpy as np
import pytest
from realistic import keystone
from rendered import page_of

from loadstone.analysis.model import Ticks
from loadstone.analysis.sla import Check
from loadstone.compare.section import report_of as report_of_comparison
from loadstone.diagnosis.finding import AuditFinding
from loadstone.errors import EnvironmentUnusable
from loadstone.report import figures, html
from loadstone.report.chart import Band, Chart, ChartSeries
from loadstone.report.html import svg
from loadstone.report.html.scale import fitted, written
from loadstone.report.sections import search, statements
from loadstone.report.sections.charts import MOST_POINTS
from loadstone.report.sections.load_charts import bars
from loadstone.report.sections.run import report_of
from loadstone.report.sections.workload import load_of
from loadstone.result.task_workload import TaskWorkload
from loadstone.search.model import Capacity, CapacityKind

RESULT, SAMPLES = keystone()
KEPT = replace(
    RESULT,
    measurements=tuple(
        replace(f, trials=tuple(replace(t, samples_file=f"{i}-{t.number}") for t in f.trials))
        for i, f in enumerate(RESULT.measurements)
    ),
)


def samples_of(trial):
    if trial.samples_file is None:
        raise EnvironmentUnusable("kept without samples")
    index, number = trial.samples_file.split("-")
    return SAMPLES[int(index), int(number)]


CHARTS = 12  # six for each workload
TICKS = ("due", "ok", "failed", "in_flight")


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
    return page_of(result, samples_of)


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
    for finding in KEPT.measurements:
        assert search.sentence(finding) in text
        for statement in statements.of(finding):
            assert statement.text in text
        for trial in finding.trials:
            assert figures.plain_ms(1000 * trial.stats.total.p99_s) in text
            for reason in trial.verdict.reasons:
                assert reason in text


def test_the_environment_and_the_command_stand_in_the_page():
    text = words_of(page())
    for name, value in (*KEPT.environment.machine, *KEPT.environment.target):
        assert f"{name} {value}" in text
    assert KEPT.command in text


def test_the_page_names_the_version_that_measured():
    machine = tuple(dict(RESULT.environment.machine, loadstone="0.0.9").items())
    older = replace(RESULT, environment=replace(RESULT.environment, machine=machine))
    assert "measured by Loadstone 0.0.9" in page_of(older)


def test_findings_of_the_audit_stand_in_the_page_with_what_was_read():
    one = AuditFinding("WEB-01", "critical", "Keystone runs in <1> process", "Set processes.")
    audited = replace(RESULT.environment, facts=(("web.processes", "1"),), audit=(one,))
    text = page(replace(KEPT, environment=audited))
    for shown in ("WEB-01", "critical", "Keystone runs in &lt;1&gt; process", "web.processes"):
        assert shown in text
    assert "What to do" not in page()


def test_what_to_do_stands_on_the_first_screen_critical_findings_first():
    found = [
        AuditFinding(rule, level, f"{rule} is bad", "Mend it.")
        for rule, level in (("KS-01", "critical"), ("KS-02", "warning"))
    ]
    audited = replace(RESULT.environment, facts=(("a", "1"),), audit=tuple(reversed(found)))
    header = page(replace(KEPT, environment=audited)).partition("</header>")[0]
    assert header.index("KS-01 is bad") < header.index("KS-02 is bad")


def test_the_page_of_a_fault_begins_with_the_downtime():
    fault = made_runs.runs()["fault"]
    text = page_of(fault, made_runs.samples_of)
    header = words_of(text.partition("</header>")[0])
    assert re.search(r"on one node: downtime [\d.]+ s, failed [\d.]+ %, recovered after", header)
    body = text.partition("<main")[2]
    assert body.index("downtime (first to last error)") < body.index("What the figures say")


def test_each_chart_is_drawn_without_scripts_and_described():
    drawn = re.findall(r'<svg class="static".*?</svg>', page(), flags=re.DOTALL)
    assert len(drawn) == CHARTS
    for drawing in drawn:
        assert 'role="img"' in drawing
        assert re.search(r'aria-label="[^"]{30,}"', drawing)
        assert "nan" not in drawing.lower()


def test_what_a_service_is_called_cannot_become_part_of_the_page():
    evil = '</script><img src=x onerror="alert(1)">'
    odd = replace(
        KEPT,
        failure=evil,
        command=evil,
        environment=replace(KEPT.environment, target=(("release", evil), (evil, evil))),
        measurements=tuple(replace(f, title=evil, notes=(evil,)) for f in KEPT.measurements),
    )
    text = page(odd)
    assert "<img" not in text
    Balanced().feed(text)


def test_no_text_changes_the_writing_direction_of_the_page():
    evil = "logins \u202e0 errors\u2066\x1b[2J"
    odd = replace(KEPT, measurements=tuple(replace(f, title=evil) for f in KEPT.measurements))
    report = report_of(odd, samples_of)
    for text in (page(odd), html.results((report,)), html.live_document(evil, "", can_stop=True)):
        assert r"logins \u202e0 errors\u2066\x1b[2J" in text
        assert not set(text) & {"\u202e", "\u2066", "\x1b"}


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
    findings = tuple(replace(finding, capacity=capacity) for finding in KEPT.measurements)
    Balanced().feed(page(replace(KEPT, measurements=findings)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_interrupted_run_gives_a_page_of_what_it_has(count):
    findings = tuple(
        replace(finding, capacity=None, trials=finding.trials[:count])
        for finding in KEPT.measurements
    )
    text = words_of(page(replace(KEPT, status="interrupted", ended_at=None, measurements=findings)))
    assert "This run was interrupted." in text
    assert "nan" not in text.lower().split()


def test_a_run_without_samples_gives_a_page_without_the_chart_of_each_request():
    text = page(RESULT)
    assert "Latency over time" not in text
    assert "Backlog over time" in text


def test_a_report_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "missing" / "report.html"
    with pytest.raises(EnvironmentUnusable, match=r"cannot write .*report\.html: No such"):
        html.write((report_of(KEPT, samples_of),), path)


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentUnusable, match=r"cannot write .*file/report\.html: Not a"):
        html.write((report_of(KEPT, samples_of),), tmp_path / "file" / "report.html")


def test_a_written_report_leaves_nothing_else(tmp_path):
    html.write((report_of(KEPT, samples_of),), tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_page_begins_with_a_table_whose_rows_lead_to_each_measurement():
    text = page()
    table = text.partition('<table class="overview')[2].partition("</table>")[0]
    for index, finding in enumerate(KEPT.measurements, 1):
        assert f'<a href="#measurement-{index}">{finding.title}</a>' in table
        assert f'data-label="N per second">{figures.n(finding.capacity)}</td>' in table
        assert figures.interval(finding.capacity) in table
        assert f'<section id="measurement-{index}"' in text
    assert text.index('<table class="overview') < text.index("</header>")


def test_the_first_screen_is_the_answer():
    header = words_of(page().partition("</header>")[0])
    assert "Keystone 30.0.0 sustains 7.19 logins and 46.3 validations a second" in header
    assert "324 ms at 6.90/s" in header
    assert "the machine's CPU" in header
    assert "0/1,106" in header
    assert header.count("valid") > 1


def test_everything_but_the_answer_is_folded():
    text = page().partition("<main")[2]
    bare = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert "<figure" not in bare
    assert "backlog grew" not in bare
    assert bare.count("<table") == len(KEPT.measurements)  # the facts of each


@pytest.mark.parametrize("capacity", [None, Capacity(None, None, None, 0.0)])
def test_without_n_no_caption_speaks_of_what_is_next_to_it(capacity):
    findings = tuple(replace(finding, capacity=capacity) for finding in KEPT.measurements)
    text = words_of(page(replace(KEPT, measurements=findings)))
    assert "Latency over time" in text
    assert "next to N" not in text
    assert "next to N" in words_of(page())


def test_a_fixed_load_has_one_throughput_and_no_charts_of_a_search():
    finding = KEPT.measurements[0]
    fixed = replace(finding, capacity=None, policy="fixed", trials=finding.trials[1:2])
    text = words_of(page(replace(KEPT, measurements=(fixed,))))
    throughput = figures.rate(finding.trials[1].stats.throughput_rps)
    assert f"{throughput} a second" in text
    assert "next to N" not in text
    assert "kept busy" not in text


def test_a_load_of_a_day_has_no_more_points_and_its_highest_backlog():
    trial = KEPT.measurements[0].trials[2]
    columns = {name: np.resize(getattr(trial.timeline, name), 172_800) for name in TICKS}
    columns["in_flight"][100_001] = 5000
    day = replace(trial, timeline=Ticks(**columns))
    fixed = replace(KEPT.measurements[0], capacity=None, policy="fixed", trials=(day,))
    report = report_of(replace(KEPT, measurements=(fixed,)), samples_of)
    [backlog] = [one for one in report.sections[0].charts if one.title == "Backlog over time"]
    [series] = backlog.series
    assert len(series.data) <= MOST_POINTS
    assert (50_001.0, 5000.0) in series.data


def test_the_caption_of_completions_names_the_time_that_a_point_stands_for():
    assert re.search(r"averaged over (0\.5|[1-9][\d.]*) s each", words_of(page()))
    assert "0 s at a time" not in page()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.25"), (9500, "9,500"), (12500, "12.5K"), (100_000, "100K"), (2_500_000, "2.5M")],
)
def test_labels_of_an_axis_stay_short(value, text):
    assert written(value) == text


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((149.8, 150.4), ["149.8", "150", "150.2", "150.4"]),
        ((219.1, 220.9), ["219", "219.5", "220", "220.5", "221"]),
        ((1.1e-6, 5.9e-6), ["1e-06", "2e-06", "3e-06", "4e-06", "5e-06", "6e-06"]),
    ],
)
def test_labels_of_an_axis_are_its_values_however_narrow_it_is(ends, labels):
    assert [written(tick) for tick in fitted(list(ends), 0.0, 100.0).ticks()] == labels


@pytest.mark.parametrize(("rows", "first"), [((), "middle"), (("only",), "start")])
def test_labels_at_the_edges_of_a_drawing_are_not_cut_off(rows, first):
    ends = ((1000.0, 1.0), (1250.0, 1.0))
    band = Band(1150.0, 1250.0, None, "N 1,150 to 1,250")
    lines = (ChartSeries("", "line", "p50", ends),)
    chart = Chart("c", "", "", "", "", lines, band, from_zero_x=False, rows=rows)
    drawn = svg.draw(chart)
    texts = re.findall(r'<text class="(?:tick|n-label)" x="([\d.]+)".*?"(\w+)">(.*?)<', drawn)
    anchors = {text: (float(x), anchor) for x, anchor, text in texts}
    assert anchors["1,250"] == (svg.WIDTH, "end")
    assert anchors["1,000"][1] == first
    assert anchors["N 1,150 to 1,250"][1] == "end"


def test_an_axis_around_one_value_has_that_value_in_its_middle_however_large():
    for value in (0.0, 5.0, -3e17, 1.7e18):
        assert fitted([value, value], 0.0, 100.0)(value) == pytest.approx(50.0, abs=0.1)


BROKEN = (
    Check("failure_rate", True, ""),
    Check("max_avg_duration", False, "0.20s <= 0.10s - Failed"),
)


def workload(checks=BROKEN):
    usage = KEPT.measurements[0].trials[2].usage
    return made_workloads.workload(SAMPLES[0, 3], checks, of_trial={"usage": usage})


def task(*workloads):
    return replace(KEPT, kind="task", title="Nightly", measurements=workloads)


def test_a_broken_sla_differs_from_one_that_held_in_text_colour_and_shape():
    made = workload(BROKEN[:1])
    text = page_of(task(made, workload()), lambda _: SAMPLES[0, 3])
    table = text.partition('<table class="overview')[2].partition("</table>")[0]
    first, second = re.findall(
        r'<span class="badge (\w+)">.*? d="([^"]+)".*?</svg> ([^<]+)<', table
    )
    assert (first[0], first[2]) == ("sustained", "SLA held")
    assert (second[0], second[2]) == ("degraded", "SLA broken: max_avg_duration")
    assert first[1] != second[1]
    header = words_of(text.partition("</header>")[0])
    assert "1 of 2 workloads broke their SLA" in header
    assert "2 at a time, 9 iterations" in header
    assert "CPU: service" in words_of(text)


def test_each_of_many_workloads_is_reached_from_the_table_and_leads_back():
    text = page_of(task(*[workload()] * 20), lambda _: SAMPLES[0, 3])
    for number in range(1, 21):
        assert f'<a href="#measurement-{number}">' in text
    assert text.count('href="#overview"') == 20
    Balanced().feed(text)


def test_the_histogram_of_durations_has_bars_as_many_as_the_data_ask_for():
    report = report_of(task(workload()), lambda _: SAMPLES[0, 3])
    charts = {chart.id: chart for chart in report.sections[0].charts}
    (series,) = charts["measurement-1-histogram"].series
    assert series.kind == "bars"
    assert sum(count for _, count in series.data) == len(SAMPLES[0, 3])
    text = html.render(report)
    drawn = text.partition('id="measurement-1-histogram"')[2].partition("</svg>")[0]
    assert drawn.count('<rect class="bar ') == sum(count > 0 for _, count in series.data)


def test_the_number_of_bars_is_that_of_numpy_and_bounded():
    random = np.random.default_rng(1)
    for size in (2, 30, 1000):
        values = random.exponential(0.1, size)
        # Without its least width of a bar for whole numbers, "auto" takes the more of the two.
        wanted = max(len(np.histogram_bin_edges(values, b)) - 1 for b in ("fd", "sturges"))
        assert bars(values) == min(wanted, 60)
    assert bars(np.array([0.1] * 50)) == 7  # Sturges: log2(50) + 1
    late = np.append(random.normal(0.1, 1e-6, 10_000), 60.0)
    assert bars(late) == 60


@pytest.mark.parametrize(
    ("runner", "text"),
    [
        ({"constant": {"times": 1000, "concurrency": 20}}, "20 at a time, 1,000 iterations"),
        ({"constant_for_duration": {"duration": 30, "concurrency": 2}}, "2 at a time, 30 s"),
        ({"rps": {"times": 100, "rps": 2.5}}, "2.5 per s, 100 iterations"),
        (
            {"rps": {"times": 9, "rps": {"start": 1, "end": 5, "step": 1}}},
            "1 to 4 per s (5 is not reached), 9 iterations",
        ),
        (
            {"rps": {"times": 9, "rps": {"start": 1, "end": 5, "step": 4, "duration": 2}}},
            "1 to 5 per s, 9 iterations",
        ),
        (
            {"rps": {"times": 20, "rps": {"start": 10, "end": 40, "step": 10, "duration": 2}}},
            "10 per s (40 is not reached), 20 iterations",
        ),
        ({"serial": {"times": 1}}, "one at a time, 1 iteration"),
        ({"serial": None}, "one at a time, 1 iteration"),
    ],
)
def test_a_load_is_said_in_words(runner, text):
    assert load_of(TaskWorkload(runner=runner)) == text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (CapacityKind.SATURATION, "the machine's CPU: its 2 cores were 97 % busy at N"),
        (CapacityKind.REFUSAL, "refusals: requests fail from here on"),
        (CapacityKind.OBJECTIVE, "the objective: responses become too slow"),
        (CapacityKind.CEILING, "the load that is allowed, not by the service"),
    ],
)
def test_the_page_says_what_limits_n(kind, words):
    finding = KEPT.measurements[0]
    limited = replace(finding, capacity=replace(finding.capacity, kind=kind))
    header = page(replace(KEPT, measurements=(limited,))).partition("</header>")[0]
    assert words in words_of(header)


def test_a_headline_that_begins_with_a_users_name_keeps_its_letters():
    compared = replace(made_runs.compared(), names=("lab-a", "lab-b"))
    assert "<h1>lab-b compared with lab-a: " in html.render(report_of_comparison(compared))
    task = replace(made_runs.runs()["task"], title="nightly")
    assert "<h1>nightly: " in html.render(report_of(task))
