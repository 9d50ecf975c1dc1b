"""Answers of memcached that are no statistics."""

import socket
import threading

import pytest

from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.open import open_source


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
