"""`--trace-share`: the report names requests that the service has seen with these trace ids."""

import json
import re

import pytest
from command_line import CommandLine
from fake_server import Request, serving


@pytest.fixture
def seen():
    return []


@pytest.fixture
def url(seen):
    class Handler(Request):
        def do_GET(self):  # noqa: N802
            seen.append(self.headers.get("traceparent"))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(Handler) as url:
        yield url


def test_the_slowest_traced_requests_are_listed_with_ids_that_the_service_has_seen(
    tmp_path, url, seen
):
    loadstone = CommandLine(tmp_path)
    words = ("hit", f"{url}/a", "--rate=40", "--for=2s", "--store=store", "--trace-share=0.5")
    loadstone(*words, "--json=out.json")  # ends with 4 on a busy machine
    document = json.loads((tmp_path / "out.json").read_text())
    [trial] = document["measurements"][0]["trials"]
    sent = {header.split("-")[1] for header in seen if header}
    assert 20 < len(sent) < 60
    listed = [one["trace_id"] for one in trial["traces"]]
    assert len(set(listed)) == 10
    assert set(listed) <= sent
    latencies = [one["latency_seconds"] for one in trial["traces"]]
    assert latencies == sorted(latencies, reverse=True)
    page = loadstone("report", "--store=store", "-o", "page.html")
    assert page.returncode == 0, page.stderr
    text = (tmp_path / "page.html").read_text()
    assert "Slowest traced requests" in text
    assert listed[0] in text


def test_without_the_option_nothing_is_traced(tmp_path, url, seen):
    CommandLine(tmp_path)("hit", url, "--rate=20", "--for=1s", "--json=out.json")
    assert set(seen) == {None}
    assert re.findall(r'"traces": \[[^]]*\]', (tmp_path / "out.json").read_text()) == [
        '"traces": []'
    ]


@pytest.mark.parametrize("share", ["nan", "-0.1", "1.1", "x"])
def test_a_share_is_from_0_to_1(tmp_path, share):
    done = CommandLine(tmp_path)("hit", "http://127.0.0.1:9/", f"--trace-share={share}")
    assert done.returncode == 2
    assert "--trace-share" in done.stderr


def test_requests_with_a_header_of_their_own_are_refused(tmp_path, url, seen):
    words = ("hit", url, "--header=Traceparent: 00-1-1-01", "--trace-share=1", "--rate=5")
    done = CommandLine(tmp_path)(*words, "--for=1s")
    assert done.returncode == 2
    assert "leave out --trace-share" in done.stderr
    assert seen == []


def test_what_python_functions_send_is_said_to_be_untraced(loadstone, write):
    write("Plain.nothing: [{runner: {type: serial, times: 2}}]")
    write(
        "from loadstone.rally.functions.plugin import scenario\n"
        '@scenario("Plain.nothing")\n'
        "def nothing(context): pass\n",
        "plugin.py",
    )
    words = ("run", "task.yaml", "--plugin", "plugin.py", "--trace-share=1", "--json=out.json")
    done = loadstone(*words)
    assert done.returncode == 0, done.stderr
    line = "Python functions send requests without traceparent"
    assert done.stderr.count(line) == 1
