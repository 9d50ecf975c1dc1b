"""The HTML page of a task run."""

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
    assert "its SLA failed" in page
    assert "bears" not in page.partition("</header>")[0]
