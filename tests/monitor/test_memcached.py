"""Answers of memcached that are no statistics."""

import socket
import threading

import pytest

from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources import memcached
from loadstone.monitor.sources.open import open_source


class Silent:
    """A connection to a server that waits for a request in another protocol."""

    def begin(self):
        pass

    def sendall(self, _request):
        pass

    def recv(self, _most):
        raise TimeoutError("timed out")

    def close(self):
        pass


def test_a_server_of_another_protocol_is_told_from_one_that_is_away(monkeypatch):
    monkeypatch.setattr(memcached, "connect", lambda _address: Silent())
    source = open_source("memcached://127.0.0.1:11211")
    with pytest.raises(Unreadable, match="no answer to `stats` in time; with SASL"):
        list(source.read())


@pytest.mark.processes
def test_a_refusal_is_told_at_once_and_in_memcacheds_words():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse():
            link, _ = server.accept()
            with link:
                link.recv(100)
                link.sendall(b"CLIENT_ERROR unauthenticated\r\n")
                link.recv(100)  # until the client closes

        thread = threading.Thread(target=refuse)
        thread.start()
        source = open_source(f"memcached://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(Unreadable, match="CLIENT_ERROR unauthenticated"):
            list(source.read())
        thread.join()
