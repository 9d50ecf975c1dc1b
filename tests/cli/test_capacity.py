import contextlib
import json
import os
import signal
import threading

import pytest
from documents import only
from known_service import known_service


@pytest.mark.verify
def test_a_starved_generator_gives_no_number(loadstone):
    """It gets a third of a core in slices, as under a container's CPU quota."""
    words = ("--users", "0", "--budget", "20s")
    with (
        known_service(2, 0.01) as known,
        loadstone.begun("capacity", *words, "--json", "-", url=known.url) as process,
    ):
        read_until(process, "token issue")
        with starved(process.pid):
            shown, told = process.communicate(timeout=500)
    assert process.returncode == 4, told
    found = only(json.loads(shown))
    assert found["capacity"]["rate_rps"] is None
    assert found["generator"]["valid"] is False
    assert found["generator"]["reasons"]


@contextlib.contextmanager
def starved(pid):
    """Let a process run for 50 ms in every 150 ms."""
    enough = threading.Event()

    def slice_it():
        with contextlib.suppress(ProcessLookupError):
            while not enough.wait(0.05):
                os.kill(pid, signal.SIGSTOP)
                enough.wait(0.1)
                os.kill(pid, signal.SIGCONT)

    slicer = threading.Thread(target=slice_it)
    slicer.start()
    try:
        yield
    finally:
        enough.set()
        slicer.join()


def read_until(process, words):
    for line in process.stderr:
        if words in line:
            return


def test_ctrl_c_keeps_what_was_measured(loadstone, service):
    with loadstone.begun("capacity", "--users", "0", url=service.url) as process:
        read_until(process, "/s done")  # the first trial has ended
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=500)
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    kept = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    assert kept["status"] == "interrupted"
    assert len(only(kept)["trials"]) >= 1


def test_a_service_that_dies_is_said_and_nothing_is_lost(loadstone):
    with (
        known_service(2, 0.02) as known,
        loadstone.begun("capacity", "--users", "0", "--budget", "30s", url=known.url) as process,
    ):
        read_until(process, "/s done")
        known.process.kill()
        _, rest = process.communicate(timeout=500)
    assert "Traceback" not in rest
    kept = only(json.loads(loadstone("results", "show", "latest", "--json", "-").stdout))
    assert kept["capacity"] is None or kept["capacity"]["rate_rps"] is None
    assert kept["trials"]
