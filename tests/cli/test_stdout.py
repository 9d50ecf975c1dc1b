"""Where standard output goes: a full disk, a closed pipe, a terminal that knows only ASCII."""

import os
import resource
import subprocess

import pytest
import realistic
from command_line import environment

from loadstone.cli.stored import OutputFile, write
from loadstone.errors import EnvironmentUnusable
from loadstone.store.store import Store

READING = (("results", "list"), ("results", "show", "latest"), ("report", "--as", "junit"))


@pytest.fixture
def kept(loadstone):
    """The command line with a run in its store."""
    with Store.open(loadstone.home / "results") as store:
        result, _ = realistic.keystone()
        store.begin(result)
        store.finish(result)
    return loadstone


def printed(loadstone, words, stdout, **variables):
    return subprocess.run(
        loadstone.words(*words),
        env=environment("http://127.0.0.1:9/v3", loadstone.home) | variables,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_full_disk_is_one_line(kept, words):
    with open("/dev/full", "w") as full:
        ended = printed(kept, words, full)
    line = "loadstone: cannot write to standard output: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (3, line)


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_reader_that_has_gone_ends_the_command_as_it_ends_others(kept, words):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        ended = printed(kept, words, closed)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_ascii_is_enough(kept):
    for words in READING:
        ended = printed(kept, words, subprocess.PIPE, PYTHONIOENCODING="ascii")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.isascii()


def test_a_file_takes_names_that_are_no_text(tmp_path):
    page = OutputFile().convert(str(tmp_path / "page.html"), None, None)
    write("caf\udce9.yaml", page)
    assert (tmp_path / "page.html").read_text() == "caf?.yaml\n"


@pytest.mark.parametrize("before", [None, "the result of yesterday\n"])
def test_a_full_disk_leaves_a_file_as_it_was(tmp_path, before):
    path = tmp_path / "result.json"
    if before is not None:
        path.write_text(before)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    try:
        with pytest.raises(EnvironmentUnusable, match="cannot write"):
            write("x" * 2000, OutputFile().convert(str(path), None, None))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert [one.read_text() for one in tmp_path.iterdir()] == ([before] if before else [])


def test_a_file_that_is_replaced_keeps_its_mode_and_its_link(tmp_path):
    path, link = tmp_path / "result.json", tmp_path / "latest.json"
    path.touch(0o600)
    link.symlink_to("result.json")
    write("{}", link)
    assert (link.is_symlink(), path.read_text()) == (True, "{}\n")
    assert path.stat().st_mode & 0o777 == 0o600
