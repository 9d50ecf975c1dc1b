"""`loadstone report --open`."""

import webbrowser

import pytest
from simulator.service import Service
from virtual import VirtualCommandLine


@pytest.fixture
def measured(loadstone: VirtualCommandLine) -> VirtualCommandLine:
    words = ("capacity", "--users=0", "--budget=30s")
    assert loadstone(*words, service=Service(capacity_rps=50.0)).code == 0
    return loadstone


def test_the_page_is_opened_in_the_browser(measured: VirtualCommandLine, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    ended = measured("report", "latest", "--open")
    assert ended.code == 0
    assert opened == [f"file://{ended.stdout.strip()}"]


def test_without_a_browser_the_path_is_printed_and_a_line_says_so(
    measured: VirtualCommandLine, monkeypatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _url: False)
    ended = measured("report", "latest", "--open")
    assert ended.code == 0
    assert ended.stdout.strip().endswith("report.html")
    assert "no browser can be started here" in ended.stderr


@pytest.mark.parametrize("words", [("--as", "junit"), ("-o", "-")])
def test_only_a_page_in_a_file_is_opened(measured: VirtualCommandLine, words) -> None:
    refused = measured("report", "latest", "--open", *words)
    assert refused.code == 2
    assert "--open shows an HTML page in a file" in refused.stderr
