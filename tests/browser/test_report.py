"""The report in a real browser: offline, without complaint, every chart drawn."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_workloads import steps, workload
from realistic import keystone
from simulator.service import Service
from simulator.simulator import Simulator
from study_files import TWO_BY_TWO, result_of

from loadstone.analysis.sla import Check
from loadstone.diagnosis.cpu_profile import CpuProfile, flame, parts, read_folded
from loadstone.engine.callables.model import IterationOutput
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.hooks import HookRun
from loadstone.report import figures, html, trial_figures
from loadstone.report.sections.run import report_of
from loadstone.result.task_workload import TaskWorkload
from loadstone.search.curve import SHARES
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES
from loadstone.store.store import Store
from loadstone.study import journal
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.section import report_of as report_of_study
from loadstone.study.table import TurnOutcome

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        "CI" not in os.environ and not Path(CHROMIUM).exists(), reason="apt-get install chromium"
    ),
]
CHARTS = 12  # six for each workload
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The result as the store gives it back, and its report."""
    result, samples = keystone()
    folder = tmp_path_factory.mktemp("store")
    with Store.open(folder) as store:
        store.begin(replace(result, status="running"))
        for index, finding in enumerate(result.measurements):
            for trial in finding.trials:
                store.keep_trial(result.run_id, index, trial, samples[index, trial.number])
        store.finish(result)
        result = store.get("latest")
        path = store.folder(result.run_id) / "report.html"
        report = report_of(result, lambda trial: store.samples(result.run_id, trial))
        html.write((report,), path)
    return result, path


@pytest.fixture
def visit(browser, kept):
    """Open the report, with all that the page asks for and complains about."""
    contexts = []

    def visit(**settings):
        context = browser.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(kept[1].as_uri())
        return page, asked, said

    yield visit
    for context in contexts:
        context.close()


def test_the_page_opens_offline_without_a_request_or_a_complaint(visit, kept):
    _, asked, said = visit()
    assert asked == [kept[1].as_uri()]
    assert said == []


def unfold(page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")


@pytest.mark.parametrize("scripts", [True, False])
def test_every_chart_is_drawn_also_without_scripts(visit, scripts):
    page, _, said = visit(java_script_enabled=scripts)
    for summary in page.locator("summary", has_text="Curves").all():
        summary.click()
    drawn = page.locator("figure svg.static")
    assert drawn.count() == CHARTS
    for chart in range(CHARTS):
        assert drawn.nth(chart).locator("path").count() > 4
        assert drawn.nth(chart).bounding_box()["height"] > 200
    assert said == []


def test_a_point_of_a_chart_names_its_figures(visit):
    page, _, _ = visit()
    tips = page.locator("#measurement-1-throughput .mark title").all_text_contents()
    assert "sustained: 6.9, 6.883" in tips


def test_in_the_dark_the_charts_have_other_colours(visit):
    colours = []
    for scheme in ("light", "dark"):
        page, _, said = visit(color_scheme=scheme)
        unfold(page)
        line = page.locator("#measurement-1-throughput .line, #measurement-1-throughput .mark")
        colours.append(line.first.evaluate("one => getComputedStyle(one).color"))
        assert said == []
    assert colours[0] != colours[1]


def test_the_first_screen_has_the_answer_and_what_to_do(visit):
    page, _, _ = visit(viewport={"width": 1400, "height": 900})
    headline = page.locator("h1")
    assert (
        headline.inner_text()
        == "Keystone 30.0.0 sustains 7.19 logins and 46.3 validations a second"
    )
    table = page.locator("table.overview").bounding_box()
    assert table["y"] + table["height"] < 450
    assert page.locator("details[open]").count() == 0


def test_n_and_the_figures_of_every_trial_are_those_of_the_store(visit, kept):
    page, _, _ = visit()
    unfold(page)
    result, _ = kept
    overview = page.locator("table.overview tbody tr")
    for index, finding in enumerate(result.measurements, 1):
        assert figures.n(finding.capacity) in overview.nth(index - 1).inner_text()
        assert figures.interval(finding.capacity) in overview.nth(index - 1).inner_text()
        section = page.locator(f"#measurement-{index}")
        rows = section.locator("[aria-label=Trials] tr.figures")
        assert rows.count() == len(finding.trials)
        for place, trial in enumerate(finding.trials):
            times = trial.stats.total
            assert rows.nth(place).locator("th, td").all_inner_texts() == [
                str(trial.number),
                trial_figures.verdict(trial),
                trial_figures.offered(trial),
                figures.rate(trial.stats.throughput_rps),
                figures.plain_ms(1000 * times.median_s),
                figures.plain_ms(1000 * times.p95_s),
                figures.plain_ms(1000 * times.p99_s),
                f"{trial.stats.load_s:.0f}",
                f"{trial.stats.due:,}",
                "0",
            ]


def test_the_charts_hold_the_store_s_numbers(kept):
    result, _ = kept
    _, samples = keystone()
    report = report_of(result, lambda trial: samples[0, min(trial.number, 3)])
    charts = {chart.id: chart for chart in report.sections[0].charts}
    trials = [t for t in result.measurements[0].trials if t.rate_rps is not None]
    points = [
        point
        for series in charts["measurement-1-throughput"].series
        if series.kind == "points"
        for point in series.data
    ]
    assert sorted(points) == sorted((t.rate_rps, t.stats.throughput_rps) for t in trials)
    assert charts["measurement-1-throughput"].band.at == 7.19


@pytest.mark.parametrize("width", [360, 400])
@pytest.mark.parametrize("is_open", [False, True])
def test_on_a_telephone_nothing_sticks_out(visit, width, is_open):
    page, _, _ = visit(viewport={"width": width, "height": 740})
    if is_open:
        unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_telephone_the_text_of_a_chart_can_be_read(visit):
    page, _, _ = visit(viewport={"width": 360, "height": 740})
    unfold(page)
    least_px = page.locator("svg.static").evaluate_all(
        "all => Math.min(...all.map(one => one.getScreenCTM().a * "
        "parseFloat(getComputedStyle(one).fontSize)))"
    )
    assert least_px >= 10


def test_a_title_without_a_space_stays_on_a_telephone(browser, tmp_path):
    result, _ = keystone()
    long = "t" * 250
    titled = tuple(replace(one, title=long) for one in result.measurements)
    html.write((report_of(replace(result, title=long, measurements=titled)),), tmp_path / "a.html")
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto((tmp_path / "a.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_on_paper_everything_is_shown_and_dark_on_white(visit):
    page, _, _ = visit(color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("figure svg.static").first.is_visible()
    assert page.get_by_text("backlog grew by 3.9 s of work").first.is_visible()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert re.findall(r"\d+", ink) == ["27", "34", "48"]


def test_a_curve_is_drawn_up_to_n_and_a_little_beyond(browser, tmp_path):
    finding, path = with_a_curve(), tmp_path / "report.html"
    report = report_of(replace(keystone()[0], measurements=(finding,)), no_samples)
    html.write((report,), path)
    charts = {chart.id: chart for chart in report.sections[0].charts}
    wanted = [share * finding.capacity.rate_rps for share in SHARES]
    lines = {one.name: one for one in charts["measurement-1-throughput"].series}
    assert [x for x, _ in lines["curve"].data] == pytest.approx(wanted)
    for series in charts["measurement-1-latency"].series:
        assert [x for x, _ in series.data] == pytest.approx(wanted)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    unfold(page)
    drawn = page.locator("#measurement-1-throughput svg.static")
    assert drawn.locator("circle").count() == len(SHARES)
    assert drawn.get_by_text("curve", exact=True).count() == 1
    context.close()


def with_a_curve():
    """A search with a curve of a simulated service that sustains 46 a second."""
    service = Simulator(Service(workers=2, capacity_rps=46.0), seed=1)
    settings = SearchSettings(budget_s=90.0, curve_s=10.0)
    capacity, trials = search(STRATEGIES["meter"](settings), service.measure)
    finding = keystone()[0].measurements[1]
    return replace(finding, capacity=capacity, trials=trials)


def test_a_task_at_rising_load_is_drawn_as_a_curve_and_its_hooks_are_marked(browser, tmp_path):
    path = tmp_path / "report.html"
    report = report_of(*at_rising_load())
    html.write((report,), path)
    rising, _ = report.sections
    charts = {chart.id: chart for chart in rising.charts}
    lines = {s.name: s.data for s in charts["measurement-1-throughput"].series}
    assert [x for x, _ in lines["throughput"]] == [2, 4, 6]
    assert [x for x, _ in lines["SLA broken"]] == [6]
    assert {s.name for s in charts["measurement-1-latency"].series} == {
        "half within",
        "95 % within",
        "99 % within",
    }
    assert [y for _, y in charts["measurement-1-success"].series[0].data] == [100, 100, 100]
    first = {chart.id: chart for chart in rising.parts[0].charts}
    assert first["measurement-1-1-output-1"].series[0].data == ((1, 7), (2, 7))
    assert [span.tone for span in first["measurement-1-1-profile"].spans] == ["degraded"]
    context = browser.new_context(offline=True)
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    rows = page.locator("header table.overview tbody tr")
    assert rows.count() == 2
    assert "SLA broken from concurrency 6 on" in rows.first.inner_text()
    unfold(page)
    assert page.locator("h4", has_text="Rows, over iterations").count() == 1
    printed = page.locator("details", has_text="Said, iteration 1").locator("pre")
    assert printed.text_content() == "<b>as it is</b>"
    page.locator("#measurement-1 table.primary a").last.click()
    assert page.url.endswith("#measurement-1-3")
    assert said == []
    context.close()


def test_a_study_has_a_row_for_each_cell_with_its_point_and_interval(browser, tmp_path):
    source = StudySource("mine.yaml", TWO_BY_TWO)
    begun = journal.begin(tmp_path, source, quick=True, seed=1)
    found = [
        TurnOutcome(turn, result_of(f"run-{turn.number}", 40.0 + turn.number))
        for turn in turns(source.study(quick=True), 1)
    ]
    html.write((report_of_study(begun, found),), tmp_path / "study.html")
    context = browser.new_context(offline=True, viewport={"width": 400, "height": 740})
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "study.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    drawing = page.locator("#chart-1 svg.static")
    assert drawing.locator("text.tick", has_text="web apache, workers 1").count() == 1
    assert drawing.locator(".mark title").count() == len(found)
    page.locator("table.overview a").first.click()
    assert page.url.endswith("#cell-1")
    assert said == []
    context.close()


def test_a_flame_graph_names_its_boxes_and_zooms(browser, tmp_path):
    run, samples = keystone()
    search = run.measurements[0]
    verify = "verify (keystone/common/password_hashers/bcrypt.py:1)"
    stacks = read_folded([f"main (flask/app.py:1);{verify} 600\nmain (flask/app.py:1) 400\n"])
    file = "profiles/1-005.folded"
    seen = CpuProfile(12.0, 50, 2, 1000, parts(stacks), flame(stacks), 1.2, file, 1)
    last = replace(search.trials[-1], profile=seen)
    run = replace(run, measurements=(replace(search, trials=(*search.trials[:-1], last)),))
    report = report_of(run, lambda trial: samples[0, trial.number])
    html.write((report,), tmp_path / "report.html")
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.goto((tmp_path / "report.html").as_uri())
    boxes = page.locator(".flame .frame")
    assert boxes.count() == 3
    narrow = page.locator(".flame .frame", has_text="verify").bounding_box()["width"]
    page.locator(".flame .frame", has_text="verify").hover()
    assert "bcrypt.py): 60.0 %, 600 samples" in page.locator(".flame-said").inner_text()
    page.locator(".flame .frame", has_text="verify").click()
    wide = page.locator(".flame .frame", has_text="verify").bounding_box()["width"]
    assert wide > 1.5 * narrow
    assert complaints == []
    page.close()


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """The page of a search with a flame graph of three boxes."""
    run, samples = keystone()
    search = run.measurements[0]
    stacks = read_folded(
        ["main (flask/app.py:1);verify (bcrypt.py:1) 600\nmain (flask/app.py:1) 1\n"]
    )
    seen = CpuProfile(12.0, 50, 2, 601, parts(stacks), flame(stacks), 1.2, "profiles/1-005.folded")
    last = replace(search.trials[-1], profile=seen)
    run = replace(run, measurements=(replace(search, trials=(*search.trials[:-1], last)),))
    path = tmp_path_factory.mktemp("profiled") / "report.html"
    html.write((report_of(run, lambda trial: samples[0, trial.number]),), path)
    return path


def test_the_keyboard_goes_through_a_flame_graph(browser, profiled):
    page = browser.new_page()
    page.goto(profiled.as_uri())
    said = page.locator(".flame-said")
    assert "arrow keys" in said.inner_text()
    graph = page.get_by_role("application")
    graph.focus()
    for key, box in (("ArrowUp", "main"), ("ArrowUp", "verify"), ("ArrowUp", "verify")):
        page.keyboard.press(key)
        assert said.inner_text().startswith(box)
    assert graph.locator(".here").count() == 1
    page.keyboard.press("ArrowDown")
    assert said.inner_text().startswith("main")
    page.keyboard.press("ArrowDown")
    assert said.inner_text() == "all workers: 100.0 %, 601 samples"
    page.keyboard.press("Enter")
    page.close()


def test_a_flame_graph_is_whole_on_narrow_paper_as_soon_as_the_page_is_loaded(browser, profiled):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script("window.requestAnimationFrame = window.setTimeout = () => 0")
    page.goto(profiled.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 900})
    box = page.locator(".flame .frame rect").first.bounding_box()
    assert box["width"] > 500
    assert box["x"] + box["width"] <= 700
    page.close()


def test_without_scripts_the_page_says_why_there_is_no_flame_graph(browser, profiled):
    page = browser.new_page(java_script_enabled=False)
    page.goto(profiled.as_uri())
    assert page.locator(".flame noscript").inner_text().startswith("A script draws it")
    assert page.get_by_text("click").count() == 0
    page.close()


def test_on_paper_bars_are_printed_and_titles_stay_with_what_they_name(visit):
    page, _, _ = visit()
    page.emulate_media(media="print")
    style = "(one, name) => getComputedStyle(one)[name]"
    assert page.locator(".interval i").first.evaluate(style, "printColorAdjust") == "exact"
    for title in ("h2", "h4", "summary"):
        assert page.locator(title).first.evaluate(style, "breakAfter") == "avoid"


def at_rising_load():
    """A task whose workload was made at three loads, then at two; one with a hook that failed."""
    result, samples = keystone()
    table = samples[0, result.measurements[0].trials[0].number]
    output = json.dumps({"additive": [], "complete": []})
    hook = HookRun(0, "time", 1, 1001.0, 1003.5, output, ("Subprocess returned 3", ""))
    figures = json.dumps({"title": "Rows", "chart_plugin": "Lines", "data": [["read", 7]]})
    text = json.dumps({"title": "Said", "chart_plugin": "TextArea", "data": ["<b>as it is</b>"]})
    first = workload(
        table,
        given=TaskWorkload(
            scenario={"Authenticate.keystone": {}},
            runner={"constant": {"times": 9, "concurrency": 2}},
            hooks=({"action": {"sys_call": "false"}, "trigger": {"event": {"unit": "time"}}},),
        ),
        of_trial={"start_s": 1000.0},
    )
    outputs = (IterationOutput(0, (figures,), (text,)), IterationOutput(1, (figures,)))
    rising, again = (
        steps(
            first,
            [{"constant": {"times": 9, "concurrency": load}} for load in loads],
            checks=[(Check("failure_rate", load < 6, ""),) for load in loads],
            hook_runs=[(hook,) if is_first and load == 2 else () for load in loads],
            outputs=[outputs if is_first and load == 2 else () for load in loads],
        )
        for is_first, loads in ((True, (2, 4, 6)), (False, (2, 4)))
    )
    task = replace(result, kind="task", measurements=(rising, again))
    return task, lambda _: table


def no_samples(trial):
    raise EnvironmentUnusable(f"the samples of trial {trial.number} were deleted")
