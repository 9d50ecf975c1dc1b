"""How a request ended."""

from enum import IntEnum


class Outcome(IntEnum):
    """How a request ended; the numbers are the engine's (rust/engine/src/outcome.rs)."""

    OK = 0
    HTTP_STATUS = 1  # answered, with a status that the step does not expect
    REFUSED = 2  # connection refused
    CONNECT_FAILED = 3  # no route, name not found
    CONNECT_TIMEOUT = 4
    TLS_FAILED = 5
    WRITE_TIMEOUT = 6
    FIRST_BYTE_TIMEOUT = 7
    BODY_TIMEOUT = 8
    RESET = 9
    CLOSED_EARLY = 10  # the server closed in the middle of an answer, or before one
    BAD_HTTP = 11  # not HTTP, or beyond the engine's bounds
    NOT_SENT = 12  # due, but the run ended before it could be sent, or answered
    NO_PORT = 13  # this machine had no local port left for the connection
    TOO_LONG = 14  # the body is longer than what is searched for captures (1 MiB)
    CERTIFICATE_EXPIRED = 15  # the server's
    WRONG_CONTENT = 16  # a value of the answer is not the one that the step expects
    NONE_FREE = 17  # no value of a chain was free
    NO_FILE = 18  # this machine allowed no further open file for the connection
    TIMED_OUT = 65  # the iteration took longer than it may, and was ended
    # Only of iterations that are Python functions (engine/callables).
    RAISED = 64  # the function raised an exception that names no HTTP status
    WORKER_DIED = 66  # its process ended in the middle
