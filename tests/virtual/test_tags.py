"""`--tag KEY=VALUE`: runs that are found again, and groups of trends that have a name."""

from pathlib import Path

import pytest
from simulator.service import Service
from virtual import VirtualCommandLine

STEADY = Service(capacity_rps=50.0)
SEARCH = ("capacity", "--users=0", "--budget=60s", "--json=-")
TASK = """
Authenticate.keystone:
  - runner: {type: constant, times: 20, concurrency: 2}
    context: {users: {tenants: 1, users_per_tenant: 1}}
"""


@pytest.fixture
def tagged(loadstone: VirtualCommandLine) -> VirtualCommandLine:
    """Three searches: two of branch main, one of branch fix, one of them also with a ticket."""
    for seed, tags in enumerate((("branch=main",), ("branch=fix", "ticket=7"), ("branch=main",))):
        words = [word for tag in tags for word in ("--tag", tag)]
        assert loadstone(*SEARCH, *words, service=STEADY, seed=seed).code == 0
    return loadstone


def listed(loadstone: VirtualCommandLine, *words: str) -> list[dict[str, str]]:
    return [run["tags"] for run in loadstone("results", "list", "--json=-", *words).data]


def test_runs_are_listed_by_their_tags(tagged: VirtualCommandLine) -> None:
    assert sorted(listed(tagged), key=str) == [
        {"branch": "fix", "ticket": "7"},
        {"branch": "main"},
        {"branch": "main"},
    ]
    assert len(listed(tagged, "--tag", "branch=main")) == 2
    assert listed(tagged, "--tag", "branch=main", "--limit", "1") == [{"branch": "main"}]
    assert listed(tagged, "--tag", "branch", "--tag", "ticket=7") == [
        {"branch": "fix", "ticket": "7"}
    ]
    assert "No run has the tag branch=x" in tagged("results", "list", "--tag", "branch=x").stdout


def test_trends_have_a_group_of_each_value_that_is_named_by_it(tagged: VirtualCommandLine) -> None:
    assert len(tagged("results", "trends", "--json=-").data) == 1
    groups = tagged("results", "trends", "--json=-", "--tag", "branch").data
    assert sorted((one["title"], len(one["runs"])) for one in groups) == [
        ("token issue, branch=fix", 1),
        ("token issue, branch=main", 2),
    ]
    [one] = tagged("results", "trends", "--json=-", "--tag", "branch=fix").data
    shown = tagged("results", "trends", "--tag", "branch=fix").stdout
    assert "no change point" not in shown
    assert one["title"] == "token issue, branch=fix"


def test_a_task_and_a_comparison_keep_tags(loadstone: VirtualCommandLine, tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text(TASK)
    loadstone("run", str(file), "--tag", "a=1", service=STEADY)
    words = ("--cloud=a", "--cloud=b", "--users=0", "--seconds=2", "--pairs=4")
    loadstone("compare", *words, "--tag", "b=2", clouds={"a": STEADY, "b": STEADY})
    assert sorted(listed(loadstone), key=str) == [{"a": "1"}, {"b": "2"}, {"b": "2"}]
    [trend] = loadstone("results", "trends", "--json=-", "--tag", "a").data
    assert trend["scenario"] == "Authenticate.keystone, a=1"
    page = loadstone("results", "trends", "--output", "-").stdout
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("main", "write KEY=VALUE"),
        ("=x", "write KEY=VALUE"),
        ("a b=x", "write KEY=VALUE"),
        ("a=\x1b[31m", "printable characters"),
        ("a=" + "x" * 201, "at most 200"),
        ("password=x", "no secrets in it"),
    ],
)
def test_a_tag_that_cannot_be_kept_is_refused(
    loadstone: VirtualCommandLine, tag: str, words: str
) -> None:
    refused = loadstone(*SEARCH, "--tag", tag, service=STEADY)
    assert refused.code == 2
    assert words in refused.stderr
