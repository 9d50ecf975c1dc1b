"""Answers of services that take too long, although each read of them is quick."""

import socket
import threading
from itertools import count
from types import SimpleNamespace

import pytest

from loadstone.monitor.sources import sockets
from loadstone.monitor.sources.address import TIMEOUT_S
from loadstone.monitor.sources.open import open_source

pytestmark = pytest.mark.processes

ROWS = b"".join(b"STAT row%d 1\r\n" % number for number in range(200_000))
PAGE = b"".join(b"row: %d\n" % number for number in range(200_000))
# Longer than one read, so that each has a second one.
ANSWERS = {
    "memcached://{}": ROWS + b"END\r\n",
    "nginx://{}": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE),
    "haproxy://{}": b"Uptime: 1\n# pxname,svname\n" + PAGE,
    "slapd://{}": b"\x30\x84%s%s" % (len(ROWS).to_bytes(4, "big"), ROWS),
}


@pytest.mark.parametrize("url", ANSWERS)
def test_an_answer_that_takes_too_long_in_all_is_given_up(url, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            link, _ = server.accept()
            with link:
                link.recv(100)
                try:
                    link.sendall(ANSWERS[url])
                except OSError:
                    return  # given up

        thread = threading.Thread(target=answer)
        thread.start()
        source = open_source(url.format(f"127.0.0.1:{server.getsockname()[1]}"))
        # No two reads fit in the time, though each of them finds bytes at once.
        clock = (at * 0.4 * TIMEOUT_S for at in count())
        monkeypatch.setattr(sockets, "time", SimpleNamespace(monotonic=clock.__next__))
        with pytest.raises(TimeoutError):
            list(source.read())
        source.close()
        thread.join()
