"""Python's own WSGI server: one process, one thread, one request at a time.

Arguments: address, port, folder of the module, name of the module.
"""

import sys
from importlib import import_module
from wsgiref.simple_server import WSGIRequestHandler, make_server


class Handler(WSGIRequestHandler):
    """Request handler without access log or reverse name look-up."""

    def log_message(self, *_: object) -> None:
        """Do not log requests."""

    def address_string(self) -> str:
        """Return the IP address without looking up its name."""
        return str(self.client_address[0])


host, port, folder, module = sys.argv[1:]
sys.path.insert(0, folder)
application = import_module(module).application
make_server(host, int(port), application, handler_class=Handler).serve_forever()
