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
from loadstone.search.curve import SHARES
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import STRATEGIES
from loadstone.store.store import Store
from loadstone.study import journal
from loadstone.study import page as study_page
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.table import TurnOutcome

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        "CI" not in os.environ and not Path(CHROMIUM).exists(), reason="apt-get install chromium"
    ),
]
BLUE = "#2456c7"
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
        html.write(result, lambda trial: store.samples(result.run_id, trial), path)
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
    page, asked, said = visit()
    page.wait_for_function("document.documentElement.dataset.charts")
    assert asked == [kept[1].as_uri()]
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn(visit, scheme):
    page, _, said = visit(color_scheme=scheme)
    page.wait_for_function("document.documentElement.dataset.charts")
    drawn = page.locator("figure.is-drawn .drawn svg")
    assert drawn.count() == CHARTS
    for chart in range(CHARTS):
        assert drawn.nth(chart).locator("path").count() > 8
        assert drawn.nth(chart).bounding_box()["height"] > 200
    assert said == []


def test_a_change_of_light_redraws_the_charts(visit):
    page, _, said = visit(color_scheme="light")
    page.wait_for_function("document.documentElement.dataset.charts")
    first = page.locator("#finding-1-throughput .drawn")
    light = first.inner_html()
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "before => document.querySelector('#finding-1-throughput .drawn').innerHTML !== before",
        arg=light,
    )
    assert said == []


def test_n_and_the_figures_of_every_trial_are_those_of_the_store(visit, kept):
    page, _, _ = visit()
    result, _ = kept
    for index, finding in enumerate(result.measurements, 1):
        section = page.locator(f"#finding-{index}")
        assert figures.n(finding.capacity) in section.locator(".tile").first.inner_text()
        assert figures.interval(finding.capacity) in section.locator(".tile").first.inner_text()
        rows = section.locator("table.trials tr.figures")
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


def test_the_charts_hold_the_store_s_numbers(visit, kept):
    page, _, _ = visit()
    charts = {c["id"]: c for c in json.loads(page.locator("#charts").text_content())}
    trials = [t for t in kept[0].measurements[0].trials if t.rate_rps is not None]
    points = [
        tuple(point)
        for series in charts["finding-1-throughput"]["series"]
        if series["kind"] == "points"
        for point in series["data"]
    ]
    assert sorted(points) == sorted((t.rate_rps, t.stats.throughput_rps) for t in trials)
    assert charts["finding-1-throughput"]["band"]["at"] == 7.19
    clouds = [s for s in charts["finding-1-time"]["series"] if s["kind"] == "cloud"]
    assert [len(cloud["data"]) for cloud in clouds] == [trials[0].stats.ok, trials[2].stats.ok]


def test_without_scripts_every_chart_is_still_there(visit):
    page, _, _ = visit(java_script_enabled=False)
    drawn = page.locator("figure svg.static")
    assert drawn.count() == CHARTS
    for chart in range(CHARTS):
        assert drawn.nth(chart).is_visible()


def test_on_a_telephone_nothing_sticks_out(visit):
    page, _, _ = visit(viewport={"width": 360, "height": 740})
    page.wait_for_function("document.documentElement.dataset.charts")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_on_paper_the_drawings_are_those_that_need_no_script(visit):
    page, _, _ = visit(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.charts")
    page.emulate_media(media="print")
    assert page.locator("figure svg.static").first.is_visible()
    assert not page.locator("figure .drawn").first.is_visible()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert re.findall(r"\d+", ink) == ["27", "34", "48"]


def test_a_curve_is_drawn_up_to_n_and_a_little_beyond(browser, tmp_path):
    finding, path = with_a_curve(), tmp_path / "report.html"
    html.write(replace(keystone()[0], measurements=(finding,)), no_samples, path)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("document.documentElement.dataset.charts")
    charts = {c["id"]: c for c in json.loads(page.locator("#charts").text_content())}
    wanted = [share * finding.capacity.rate_rps for share in SHARES]
    lines = {s["name"]: s for s in charts["finding-1-throughput"]["series"]}
    assert [x for x, _ in lines["curve"]["data"]] == pytest.approx(wanted)
    for series in charts["finding-1-latency"]["series"]:
        assert [x for x, _ in series["data"]] == pytest.approx(wanted)
    drawn = page.locator("#finding-1-throughput .drawn svg")
    assert drawn.locator("path").count() > len(SHARES)
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
    html.write(*at_rising_load(), path)
    context = browser.new_context(offline=True)
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("document.documentElement.dataset.charts")
    charts = {c["id"]: c for c in json.loads(page.locator("#charts").text_content())}
    lines = {s["name"]: s["data"] for s in charts["steps-1-throughput"]["series"]}
    assert [x for x, _ in lines["throughput"]] == [2, 4, 6]
    assert [x for x, _ in lines["SLA broken"]] == [6]
    assert {s["name"] for s in charts["steps-1-latency"]["series"]} == {
        "half within",
        "95 % within",
        "99 % within",
    }
    assert [y for _, y in charts["steps-1-success"]["series"][0]["data"]] == [100, 100, 100]
    # The second workload of the same name begins at its own first step.
    assert page.locator("section[id^=steps-]").count() == 2
    rows = page.locator("header table.overview tbody tr")
    assert rows.count() == 2
    assert "broken from concurrency 6 on" in rows.first.inner_text()
    drawn = page.locator("figure.is-drawn .drawn svg")
    assert drawn.count() == len(charts)
    profile = page.locator("#workload-1-profile .drawn svg")
    orange = "rgb(194,65,12)"
    assert profile.locator(f"path[fill='{orange}'], path[fill='#c2410c']").count() == 1
    assert charts["workload-1-output-1"]["series"][0]["data"] == [[1, 7], [2, 7]]
    assert page.locator("h4", has_text="Rows, over iterations").count() == 1
    assert page.locator("h4:text('Said, iteration 1') + pre").text_content() == "<b>as it is</b>"
    page.locator("#steps-1 table a").last.click()
    assert page.url.endswith("#workload-3")
    assert said == []
    context.close()


def test_a_study_has_a_row_for_each_cell_with_its_point_and_interval(browser, tmp_path):
    source = StudySource("mine.yaml", TWO_BY_TWO)
    begun = journal.begin(tmp_path, source, quick=True, seed=1)
    found = [
        TurnOutcome(turn, result_of(f"run-{turn.number}", 40.0 + turn.number))
        for turn in turns(source.study(quick=True), 1)
    ]
    study_page.write(begun, found, tmp_path / "study.html")
    context = browser.new_context(offline=True, viewport={"width": 360, "height": 740})
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "study.html").as_uri())
    page.wait_for_function("document.documentElement.dataset.charts")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    drawing = page.locator("#chart-1 .drawn svg")
    blue = page.locator(f"#chart-1 .drawn svg path[stroke='{BLUE}']")
    assert blue.count() == 3 * len(found)  # of each interval its line and both ends
    assert drawing.locator(f"path[fill='{BLUE}']").count() >= len(found)
    page.set_viewport_size({"width": 1200, "height": 800})
    drawing.get_by_text("web apache, workers 1", exact=True).wait_for()
    page.locator("table.cells a").first.click()
    assert page.url.endswith("#cell-1")
    assert said == []
    context.close()


def test_durations_are_drawn_as_bars(browser, tmp_path):
    task, samples_of = at_rising_load()
    html.write(task, samples_of, tmp_path / "report.html")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_function("document.documentElement.dataset.charts")
    charts = {c["id"]: c for c in json.loads(page.locator("#charts").text_content())}
    (series,) = charts["workload-1-histogram"]["series"]
    bars = page.locator(f"#workload-1-histogram .drawn svg path[fill='{BLUE}'][fill-opacity]")
    assert bars.count() == len(series["data"]) - 1
    context.close()


def test_a_flame_graph_names_its_boxes_and_zooms(browser, tmp_path):
    run, samples = keystone()
    search = run.measurements[0]
    verify = "verify (keystone/common/password_hashers/bcrypt.py:1)"
    stacks = read_folded([f"main (flask/app.py:1);{verify} 600\nmain (flask/app.py:1) 400\n"])
    seen = CpuProfile(12.0, 50, 2, 1000, parts(stacks), flame(stacks), 1.2, "profiles/1-005.folded")
    last = replace(search.trials[-1], profile=seen)
    run = replace(run, measurements=(replace(search, trials=(*search.trials[:-1], last)),))
    html.write(run, lambda trial: samples[0, trial.number], tmp_path / "report.html")
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_selector("html[data-charts]")
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
        spec={
            "scenario": {"Authenticate.keystone": {}},
            "runner": {"constant": {"times": 9, "concurrency": 2}},
            "contexts": {},
            "sla": {},
            "hooks": [{"action": {"sys_call": "false"}}],
        },
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
