"""`loadstone hit URL`: load without a cloud."""

import json
import shlex
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from known_service import TOKEN_REQUEST, known_service

from loadstone.cli.generator import HIGHEST_RPS
from loadstone.cli.hit import hit
from loadstone.workload.model import RunConfig
from loadstone.workload.requests import Requests

SECRET = "s3cr3t-of-a-query"


def test_a_url_is_loaded_and_the_result_is_kept_without_what_may_be_secret(
    loadstone, service, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{service.port}/v3/?key={SECRET}"
    headers = ("--header", f"X-Auth-Token: {SECRET}")
    words = ("--rate", "20", "--for", "3s", "--tag", "a=1")
    ended = loadstone("hit", url, *words, *headers, "--json", "-")
    run = json.loads(ended.stdout)
    [trial] = run["measurements"][0]["trials"]
    assert trial["requests"] == 60
    [entry] = json.loads(loadstone("results", "list", "--json", "-").stdout)
    assert entry["kind"] == "hit"
    assert entry["tags"] == {"a": "1"}
    assert entry["target"] == f"http://127.0.0.1:{service.port}/v3"
    assert loadstone("report", "latest", "-o", "page.html").returncode == 0
    seen = [ended.stdout, ended.stderr, *map(_text, tmp_path.rglob("*"))]
    assert not any(SECRET in text for text in seen)


def test_a_service_that_no_request_reaches_cannot_be_used(loadstone) -> None:
    with socket.socket() as bound:  # which does not listen
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        ended = loadstone("hit", url, "--rate", "20", "--for", "3s", "--json", "-")
    certainty = json.loads(ended.stdout)["measurements"][0]["certainty"]
    assert (ended.returncode, certainty["exit_code"]) == (3, 3)
    assert certainty["reason"].startswith("no request reached it: connection refused; check the")


def asked_for(monkeypatch: pytest.MonkeyPatch, *words: str) -> RunConfig:
    """Return the run that a command line asks for."""
    asked: list[RunConfig] = []
    monkeypatch.setattr("loadstone.cli.hit.run_and_show", lambda one, *_: asked.append(one) or 0)
    monkeypatch.setattr("sys.argv", ["loadstone", "hit", *words])
    assert CliRunner().invoke(hit, words).exit_code == 0
    return asked[0]


@pytest.mark.parametrize("header", [("--header=X-A: babbage",), ("--header", "X-A: babbage")])
def test_neither_query_nor_header_is_in_the_recorded_command(monkeypatch, header) -> None:
    url = "http://127.0.0.1:9/items?customer=lovelace#there"
    asked = asked_for(monkeypatch, *header, url, "--for", "1s")
    shown = shlex.join(header).replace("babbage", "***")
    assert asked.command == f"loadstone hit {shown} http://127.0.0.1:9/items --for 1s"


def test_a_late_generator_catches_up_at_no_more_than_twice_the_rate(monkeypatch) -> None:
    """At a ceiling of the rate itself, a generator that was late once stays as late."""
    url = "http://127.0.0.1:9/"
    assert asked_for(monkeypatch, url, "--rate", "40").max_rate_rps == 80.0
    assert asked_for(monkeypatch, url).max_rate_rps == 100.0
    assert asked_for(monkeypatch, url, "--concurrency", "4").max_rate_rps == HIGHEST_RPS


def test_a_body_is_sent_with_the_ends_of_lines_of_its_file(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"--x\r\n\r\n1\n\xc3\xa4\r\n--x--\r\n")
    words = ("http://127.0.0.1:9/", "--body", str(tmp_path / "body"), "--method", "POST")
    generator = asked_for(monkeypatch, *words).measurements[0].generator
    assert isinstance(generator, Requests)
    [step] = generator.scenario.steps
    [part] = step.body
    [sent] = generator.scenario.values[part.column]
    assert sent == "--x\r\n\r\n1\n\u00e4\r\n--x--\r\n"


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""


def test_another_status_than_the_expected_one_is_a_failure(loadstone, service) -> None:
    ended = loadstone("hit", f"http://127.0.0.1:{service.port}/none", "--concurrency", "2")
    assert ended.returncode == 1
    assert "404 Not Found" in ended.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("http://192.0.2.1/",), "add --yes-load-this-target"),
        (("http://192.0.2.1/", "--fleet", "local:2"), "add --yes-load-this-target"),
        (("ftp://127.0.0.1/",), "URL: must be http://HOST"),
        (("127.0.0.1:80",), "URL: must be http://HOST"),
        (("http://127.0.0.1:99999/",), "URL: "),
        (("http://127.0.0.1/caf\udce9",), "URL: is not UTF-8; write such bytes as %E9"),
        ((f"http://u:{SECRET}@127.0.0.1/",), "names a user"),
        (("http://127.0.0.1/", "--header", SECRET), "a header is NAME: VALUE"),
        (("http://127.0.0.1/", "--header", "X-A: caf\udce9"), "a header is UTF-8 text"),
        (
            ("http://127.0.0.1/", "--header", f"X-A: {SECRET}", "--header", "x-a: 2"),
            "--header x-a: is given twice",
        ),
        (("http://127.0.0.1/", "--rate", "3", "--concurrency", "3"), "not both"),
        (("http://127.0.0.1/", "--for", "0s"), "0s must be more than 0"),
        (("http://127.0.0.1/", "--timeout", "0"), "0 must be more than 0"),
        (("http://127.0.0.1/", "--expect", "100"), "200<=x<=599"),
        (("http://127.0.0.1/", "--method", "G T"), "--method 'G T': is not an HTTP method"),
        (("http://127.0.0.1/", "--header", "A B: c"), "'A B': is not the name of a header"),
        (
            ("http://127.0.0.1/", "--header", "Content-Length: 3"),
            "is written by the load generator; leave it out",
        ),
        (
            ("http://127.0.0.1/", "--concurrency", "5", "--max-connections", "2"),
            "--concurrency 5 needs as many connections, and --max-connections allows 2",
        ),
    ],
)
def test_what_cannot_be_loaded_is_one_line(loadstone, words, said) -> None:
    ended = loadstone("hit", *words)
    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr
    assert SECRET not in ended.stderr


def test_a_dry_run_sends_nothing(loadstone) -> None:
    words = ("--rate", "7", "--for", "4s", "--dry-run", "--json", "-")
    [run] = json.loads(loadstone("hit", "http://127.0.0.1:9/", *words).stdout)["runs"]
    assert (run["rate_per_s_at_most"], run["seconds_at_most"]) == (7.0, 4.0)
    assert run["creates"] == []


def test_requests_that_wait_for_a_connection_are_said_to_need_more(
    loadstone, tmp_path: Path
) -> None:
    (tmp_path / "body").write_text(TOKEN_REQUEST)
    words = ("--rate=60", "--for=1s", "--max-connections=1", "--quiet", "--method=POST")
    sent = ("--body", str(tmp_path / "body"), "--header", "Content-Type: application/json")
    with known_service(1, 0.06) as slow:
        ended = loadstone("hit", f"{slow.url}/auth/tokens", *words, *sent, "--expect=201")
    assert ended.returncode == 4
    assert "raise --max-connections or lower --rate" in ended.stderr
    assert "--budget" not in ended.stderr
