"""A task run as a page, as test cases, and its rules checked again."""

import json
from xml.etree import ElementTree as Xml

TASK = """
version: 2
title: Tokens & <more>
subtasks:
  - title: Issue tokens
    scenario: {Authenticate.keystone: {}}
    runner: {constant: {times: 40, concurrency: 4}}
"""


def test_the_page_of_a_task_shows_figures_sla_failures_curves_and_the_workload(
    loadstone, fake, write, tmp_path
):
    seen = []

    def disturb(method, path):
        if (method, path) == ("POST", "/v3/auth/tokens"):
            seen.append(path)
        return 503 if len(seen) == 20 and path == "/v3/auth/tokens" else None

    fake.disturb = disturb
    assert loadstone("run", write(TASK)).returncode == 1
    told = loadstone("report", "latest", "-o", "page.html")
    assert told.returncode == 0, told.stderr
    page = (tmp_path / "page.html").read_text()
    for words in (
        "Tokens &amp; &lt;more&gt;",
        "authenticate.keystone",
        "99%ile",
        "failure_rate",
        "503 Service Unavailable",
        "Load profile",
        "Duration of each iteration",
        "Histogram of durations",
        "&#34;concurrency&#34;: 4",
    ):
        assert words in page
    assert "the workload broke its SLA" in page
    assert "sustains" not in page.partition("</header>")[0]


def test_rules_are_checked_again_with_the_exit_code_that_says_how_many_failed(loadstone, write):
    rules = "{failure_rate: {max: 0}, max_seconds_per_iteration: 0.000001, min_iterations: 9}"
    task = f"{TASK}    sla: {rules}\n"
    assert loadstone("run", write(task)).returncode == 1
    told = loadstone("results", "sla-check")
    assert told.returncode == 1
    assert [line.split()[:4] for line in told.stdout.splitlines() if "Authenticate" in line] == [
        ["Authenticate.keystone", "0", "failure_rate", "PASS"],
        ["Authenticate.keystone", "0", "max_seconds_per_iteration", "FAIL"],
        ["Authenticate.keystone", "0", "min_iterations", "PASS"],
    ]
    told = loadstone("results", "sla-check", "latest", "--json", "-", "--exit-code-style", "rally")
    assert told.returncode == 1
    rows = json.loads(told.stdout)
    assert set(rows[0]) == {"criterion", "detail", "status", "benchmark", "pos"}
    assert [row["status"] for row in rows] == ["PASS", "FAIL", "PASS"]


def test_each_test_case_has_a_name_of_its_own(loadstone, write):
    workload = "    runner: {constant: {times: 2, concurrency: 1}}\n"
    twice = "    workloads:\n" + 2 * (
        "      - scenario: {Authenticate.keystone: {}}\n        runner: {constant: {times: 2}}\n"
    )
    head = TASK.partition("    scenario")[0]
    assert loadstone("run", write(head + twice), "--junit", "two.xml").returncode == 0
    assert names("two.xml") == ["Issue tokens", "Issue tokens (2)"]
    stepped = head + "    scenario: {Authenticate.keystone: {}}\n" + workload
    steps = ("--step", "concurrency=+1", "--until", "success<100%")
    assert loadstone("run", write(stepped), *steps, "--junit", "steps.xml").returncode == 0
    assert names("steps.xml") == ["Issue tokens, concurrency 1", "Issue tokens, concurrency 2"]


def names(file):
    return [case.get("name") for case in Xml.parse(file).iter("testcase")]


def test_several_runs_stand_in_one_page_and_in_one_file_for_rally(loadstone, write, tmp_path):
    for _ in range(2):
        assert loadstone("run", write(TASK)).returncode == 0
    runs = [run["run_id"] for run in json.loads(loadstone("results", "list", "--json", "-").stdout)]
    assert loadstone("report", *runs, "-o", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert f"<h1>{runs[1]} compared with {runs[0]}: " in page
    for anchor in ("measurement-1", "run-2-measurement-1"):
        assert f'<a href="#{anchor}">' in page
        assert f'<section id="{anchor}"' in page
        assert f'<figure class="chart" id="{anchor}-profile">' in page
    told = loadstone("report", *runs)
    assert told.returncode == 2
    assert "-o FILE" in told.stderr
    assert "takes one run" in loadstone("report", *runs, "--as", "junit").stderr
    assert loadstone("report", *runs, "--as", "rally-json", "-o", "both.json").returncode == 0
    told = loadstone("results", "import", "both.json", "--store", "other")
    assert told.stdout.count("imported") == 2
    assert loadstone("report", "--store", "other", "-o", "rallys.html").returncode == 0
    assert "measured by Rally 5.1.1" in (tmp_path / "rallys.html").read_text()
    assert loadstone("results", "trends", "-o", "trends.html").returncode == 0
    trends = (tmp_path / "trends.html").read_text()
    assert "latest of 2 runs" in trends
    assert [title for title in ("Durations", "Success rate") if f"<h4>{title}</h4>" in trends] == [
        "Durations",
        "Success rate",
    ]


def test_samples_that_cannot_be_read_are_said_where_a_page_lacks_their_charts(
    loadstone, write, tmp_path
):
    assert loadstone("run", write(TASK)).returncode == 0
    assert loadstone("report", "latest", "-o", "page.html").stderr == ""
    [samples] = tmp_path.rglob("runs/*/samples/*.parquet")
    samples.write_bytes(samples.read_bytes()[:100])
    told = loadstone("report", "latest", "-o", "page.html")
    assert told.returncode == 0
    assert f"without a chart of samples: {samples}: cannot be read" in told.stderr
    assert "Histogram of durations" not in (tmp_path / "page.html").read_text()


def test_missing_samples_are_said_where_rallys_format_lacks_them(loadstone, write, tmp_path):
    assert loadstone("run", write(TASK)).returncode == 0
    [samples] = tmp_path.rglob("runs/*/samples/*.parquet")
    samples.unlink()
    told = loadstone("report", "--as", "rally-json", "-o", "rally.json")
    assert told.returncode == 0
    assert "Rally's JSON has no iterations of Issue tokens" in told.stderr
    [task] = json.loads((tmp_path / "rally.json").read_text())["tasks"]
    [workload] = task["subtasks"][0]["workloads"]
    assert workload["statistics"]["durations"]["total"]["data"]["iteration_count"] == 40
    assert workload["data"] == []
