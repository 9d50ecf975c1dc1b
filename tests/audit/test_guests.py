"""Guests by memory: both formulas, and what they are fed with."""

import json

import click
import pytest
from audited import document
from click.testing import CliRunner
from fake_cloud import PASSWORD, SERVICES, fake_cloud

from loadstone.audit import archive
from loadstone.audit.transport import Collected
from loadstone.cli import loadstone
from loadstone.errors import EnvironmentUnusable, InvalidInput


def guests(*words):
    done = CliRunner().invoke(loadstone, ["audit", "guests", *words], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.stdout


def rows(*words):
    return json.loads(guests(*words, "--json", "-"))


def test_both_formulas():
    node = ("--node", "c1=262144:100000", "--reserved-mb", "2048", "--overcommit", "1.5")
    # (262144 - 2048) x 1.5 / 2048 = 190.5; 100000 / 2048 = 48.8
    assert rows(*node, "--flavor", "m1.small=2048") == [
        {"node": "c1", "flavor": "m1.small", "total": 190, "additional": 48}
    ]


def test_free_memory_that_is_not_known_is_not_guessed():
    text = guests("--node", "c1=8192", "--flavor", "small=1024", "--reserved-mb", "0")
    assert text.splitlines()[1].split() == ["c1", "small", "8", "?"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--node", "c1", "--flavor", "a=1"), "--node c1: must be NAME=MB or NAME=MB:FREE"),
        (("--node", "c1=10", "--flavor", "a=0"), "--flavor a=0: must be NAME=MB"),
        (("--node", "c1=10"), "name flavors"),
    ],
)
def test_a_mistake_is_told(words, says):
    with pytest.raises(InvalidInput, match=says):
        guests(*words)


def test_nodes_are_of_nova_or_named():
    with pytest.raises(click.UsageError, match="--cloud asks Nova for the nodes"):
        guests("--cloud", "mine", "--node", "c1=10", "--flavor", "a=1")


@pytest.fixture
def cloud(monkeypatch):
    with fake_cloud() as (fake, settings):
        fake.token_is_good = True
        for name, value in {
            "OS_AUTH_URL": settings["auth_url"],
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": "admin",
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
        }.items():
            monkeypatch.setenv(name, value)
        yield fake


@pytest.mark.processes
@pytest.mark.parametrize("most_listed", [1, 1000])
def test_nova_tells_nodes_and_flavors_in_pages(cloud, most_listed):
    cloud.most_listed = most_listed
    found = rows("--reserved-mb", "0")
    assert [(r["node"], r["flavor"], r["total"], r["additional"]) for r in found] == [
        ("c1", "m1.tiny", 512, 195),
        ("c1", "m1.tiny2", 128, 48),
        ("c2", "m1.tiny", 128, 0),  # overcommitted: Nova's free memory is negative
        ("c2", "m1.tiny2", 32, 0),
    ]


@pytest.mark.processes
def test_who_may_not_list_nodes_is_told_so(cloud):
    cloud.down.add("compute")
    with pytest.raises(EnvironmentUnusable, match="Nova answers 503 to /os-hypervisors/detail"):
        guests()


@pytest.mark.processes
@pytest.mark.parametrize("page", [b"<html>", {"hypervisors": {}}, []])
def test_a_page_that_is_not_of_nova_is_told(cloud, monkeypatch, page):
    answer = cloud.answer
    monkeypatch.setattr(
        cloud,
        "answer",
        lambda request, path, body: (
            (200, page) if "os-hypervisors" in path else answer(request, path, body)
        ),
    )
    with pytest.raises(EnvironmentUnusable, match="could not list hypervisors: HTTP 200 with"):
        guests()


@pytest.mark.processes
@pytest.mark.usefixtures("cloud")
def test_a_catalog_without_nova_is_told_with_the_setting_that_is_not_used(monkeypatch):
    monkeypatch.delitem(SERVICES, "compute")
    monkeypatch.setenv("OS_COMPUTE_ENDPOINT_OVERRIDE", "http://127.0.0.1:8774/v2.1")
    with pytest.raises(
        EnvironmentUnusable, match=r"has no compute .* \(compute_endpoint_override is not used\)"
    ):
        guests()


def test_a_host_without_facts_is_not_left_out_in_silence(tmp_path):
    nova = {"nova": {"/etc/nova/nova.conf": "[DEFAULT]\nram_allocation_ratio = 1\n"}}
    tree = archive.as_tree(
        [Collected("c1", document(nova)), Collected("c2", failure="no answer")], is_lab=False
    )
    (tmp_path / "facts.json").write_text(json.dumps(tree))
    words = ["audit", "guests", str(tmp_path / "facts.json"), "--flavor", "a=1024"]
    done = CliRunner().invoke(loadstone, words, standalone_mode=False)
    assert done.stderr == "c2 is left out, whether it is a compute node or not: no answer\n"
    assert done.stdout.splitlines()[1].split()[0] == "c1"


def test_facts_of_compute_nodes_have_their_own_reserve(tmp_path):
    conf = "[DEFAULT]\nreserved_host_memory_mb = 2000\nram_allocation_ratio = 2.0\n"
    node = document({"nova": {"/etc/nova/nova.conf": conf}})
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(archive.as_tree([Collected("c1", node)], is_lab=False)))
    # 16000 MB in all, 10000 available: (16000 - 2000) x 2 / 1000 = 28
    assert rows(str(path), "--flavor", "one=1000") == [
        {"node": "c1", "flavor": "one", "total": 28, "additional": 10}
    ]


@pytest.mark.parametrize(
    ("conf", "words", "total"),
    [
        ("initial_ram_allocation_ratio = 1.5\n", (), 21),
        ("ram_allocation_ratio = 0.0\ninitial_ram_allocation_ratio = 1.5\n", (), 21),
        ("ram_allocation_ratio = 2\ninitial_ram_allocation_ratio = 1.5\n", (), 28),
        ("", (), 14),
        ("ram_allocation_ratio = 0.0\n", ("--overcommit", "3"), 42),
    ],
)
def test_the_ratio_of_a_node_is_the_one_that_nova_takes(tmp_path, conf, words, total):
    text = f"[DEFAULT]\nreserved_host_memory_mb = 2000\n{conf}"
    node = document({"nova": {"/etc/nova/nova.conf": text}})
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(archive.as_tree([Collected("c1", node)], is_lab=False)))
    every = ["audit", "guests", str(path), "--flavor", "one=1000", "--json", "-", *words]
    done = CliRunner().invoke(loadstone, every, standalone_mode=False)
    assert [row["total"] for row in json.loads(done.stdout)] == [total]
    is_unset = "initial" not in conf and "= 2" not in conf
    assert ("c1: nova.conf sets no ram_allocation_ratio" in done.stderr) is is_unset
