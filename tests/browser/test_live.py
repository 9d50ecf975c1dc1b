"""The live page in a real browser, while a search measures a service of known capacity."""

import json
import os
import re
import shutil
from pathlib import Path

import made_runs
import pytest
from command_line import CommandLine
from known_service import known_service

from loadstone.report import html
from loadstone.report.sections.run import report_of

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        "CI" not in os.environ and not Path(CHROMIUM).exists(), reason="apt-get install chromium"
    ),
]
QUIET = ("--no-sandbox", "--disable-background-networking", "--no-first-run")
SEARCH = ("capacity", "--users=0", "--live", "--json=result.json")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def loadstone(tmp_path):
    return CommandLine(tmp_path)


def opened(browser, process):
    """Open the page whose address a command prints."""
    url = re.fullmatch(r"live page: (\S+)\n", process.stderr.readline())[1]
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(url)
    return page, said


# Of fixed loads, because a search on a busy machine may end without a number.
TASK = """
version: 2
title: Logins
subtasks:
  - title: All
    workloads:
      - {scenario: {Authenticate.keystone: {}}, runner: {constant: {times: 400, concurrency: 2}}}
      - {scenario: {Authenticate.keystone: {}}, runner: {constant: {times: 300, concurrency: 4}}}
"""


def test_a_run_is_followed_until_its_report_is_there(browser, loadstone, tmp_path):
    (tmp_path / "task.yaml").write_text(TASK)
    words = ("run", tmp_path / "task.yaml", "--live", "--json=result.json")
    with (
        known_service(4, 0.06) as service,
        loadstone.begun(*map(str, words), url=service.url) as process,
    ):
        page, said = opened(browser, process)
        page.locator("#now svg.static").first.wait_for(timeout=60_000)
        for figure in ("completed", "latency p99", "backlog"):
            assert page.locator(".tiles dt", has_text=figure).count() == 1
        # What the reader unfolds stays unfolded.
        page.locator("#now summary", has_text="Messages").click()
        before = page.locator("#now").inner_text()
        changed = "text => document.getElementById('now').innerText !== text"
        page.wait_for_function(changed, arg=before)
        assert page.locator("#now details[open]").count() == 1
        assert page.evaluate("document.activeElement.textContent") == "Messages"
        # The first load is judged while the second one runs.
        page.locator("#results tbody tr").first.wait_for(timeout=60_000)
        page.locator("main#content").wait_for(timeout=90_000)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        shown = page.locator("main#content .answer").all_inner_texts()
        page.close()
    workloads = json.loads((tmp_path / "result.json").read_text())["measurements"]
    figures = [re.search(r"(\d+) of (\d+) succeeded, ([\d.]+) a second", text) for text in shown]
    for figure, workload in zip(figures, workloads, strict=True):
        trial = workload["trials"][0]
        assert figure is not None
        assert figure[1] == figure[2] == str(trial["requests"])
        assert float(figure[3]) == pytest.approx(trial["throughput_rps"], rel=0.005)
    assert said == []


def test_what_is_unfolded_of_one_workload_is_not_unfolded_of_others(browser):
    document = html.live_document("Two workloads", "nonce", can_stop=False)
    results = html.results((report_of(made_runs.runs()["task"]),))
    page = browser.new_page()
    page.route("**/events", lambda route: route.abort())
    page.route("**/live/", lambda route: route.fulfill(body=document, content_type="text/html"))
    page.goto("http://127.0.0.1/live/")
    page.evaluate("html => put('results', html)", results)
    folded = page.locator("#results summary", has_text="SLA")
    assert folded.count() > 1
    folded.last.click()
    page.evaluate("html => put('results', html)", results)
    opened = page.locator("#results details").evaluate_all(
        "all => all.filter(one => one.open).map(one => one.closest('section').id)"
    )
    last = page.locator("#results section[aria-labelledby]").last.get_attribute("id")
    assert opened == [last]
    focused = "document.activeElement.closest('section').id"
    assert page.evaluate(focused) == last
    page.close()


def test_what_is_scrolled_aside_or_focused_stays_so_when_the_page_changes(browser):
    document = html.live_document("Two searches", "nonce", can_stop=False)
    results = html.results((report_of(made_runs.runs()["search"]),))
    page = browser.new_page(viewport={"width": 375, "height": 700})
    page.route("**/events", lambda route: route.abort())
    page.route("**/live/", lambda route: route.fulfill(body=document, content_type="text/html"))
    page.goto("http://127.0.0.1/live/")
    page.evaluate("html => put('results', html)", results)
    page.locator("#results summary", has_text="Trials").last.click()
    trials = page.get_by_role("region", name="Trials").last
    trials.evaluate("one => { one.scrollLeft = 50; one.focus(); }")
    page.evaluate("html => put('results', html)", results)
    assert trials.evaluate("one => one.scrollLeft") == 50
    assert trials.evaluate("one => one === document.activeElement")
    link = page.locator("#results .overview a").last
    link.focus()
    page.evaluate("html => put('results', html)", results)
    assert link.evaluate("one => one === document.activeElement")
    page.close()


def test_without_scripts_the_live_page_offers_nothing_that_needs_them(browser):
    page = browser.new_page(java_script_enabled=False)
    page.set_content(html.live_document("Two searches", "nonce", can_stop=True))
    assert page.locator("noscript p").is_visible()
    assert not page.locator("#stop").is_visible()
    assert not page.locator("#link").is_visible()
    page.close()


def test_stop_keeps_what_was_measured(browser, loadstone, tmp_path):
    with (
        known_service(4, 0.06) as service,
        loadstone.begun(*SEARCH, "--budget=10m", url=service.url) as process,
    ):
        page, said = opened(browser, process)
        page.on("dialog", lambda dialog: dialog.accept())
        page.locator("#results tbody tr").first.wait_for(timeout=60_000)
        page.get_by_role("button", name="Stop").click()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        page.locator("main#content").wait_for(timeout=30_000)
        assert "interrupted" in page.locator("header").inner_text()
        page.close()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["status"] == "interrupted"
    assert result["measurements"][0]["trials"]
    assert said == []
