"""The HTTP server that the fake services share."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Closes the connections that clients keep open when it is closed."""

    daemon_threads = False

    def __init__(self, handler, tls, host):
        super().__init__((host, 0), handler)
        self.tls = tls
        self.accepted = []

    def get_request(self):
        accepted, address = super().get_request()
        if self.tls is not None:
            # The connection's own thread does the handshake, at its first read.
            accepted = self.tls.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )
        self.accepted.append(accepted)
        return accepted, address

    def server_close(self):
        for accepted in self.accepted:
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        super().server_close()


@contextmanager
def serving(handler, tls=None, host="127.0.0.1"):
    """Serve on a free port; yield the URL without a path."""
    server = Server(handler, tls, host)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://{host}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Request(BaseHTTPRequestHandler):
    """One request of a fake service's client, and the way to answer it. Logs nothing."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment an answer, else each waits for a delayed ACK

    def log_message(self, *_):
        pass

    def handle(self):
        # A client may hang up, or speak no TLS.
        with suppress(OSError):
            super().handle()

    def body(self):
        """Return the whole body.

        Raises ConnectionError if the client is gone before it sent all of it.
        """
        length = int(self.headers.get("Content-Length") or 0)
        received = self.rfile.read(length)
        if len(received) < length:
            raise ConnectionError("the client closed the connection within its request")
        return received

    def json(self):
        """Return the body as JSON, None if there is none."""
        body = self.body()
        return json.loads(body) if body else None

    def answer(self, status, value=None, headers=()):
        """Answer with bytes, or with a value as JSON."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        body = b"" if value is None else body
        self.send_response(status)
        for name, text in (("Content-Type", "application/json"), *headers):
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def handled(serve):
    """Return the handler class that passes each request, whatever its method, to a function."""

    class Handled(Request):
        def __getattr__(self, name):
            if name.startswith("do_"):
                return lambda: serve(self)
            raise AttributeError(name)

    return Handled


def answering(status, body=b""):
    """Return the handler class that always gives this answer."""
    return handled(lambda request: request.answer(status, body))
