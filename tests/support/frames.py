"""HTTP/2 servers of tests, frame by frame (RFC 9113): those that misbehave as no library would."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loopback import Behaviour, Connection

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
ACK = END_STREAM = 1
END_HEADERS = 4
STATUS_200 = b"\x88"  # HPACK's static table
INTERNAL_ERROR, REFUSED_STREAM, CANCEL = 2, 7, 8


@dataclass(frozen=True)
class Frame:
    """What the client said."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Give a frame's bytes."""
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
    return head + struct.pack(">I", stream) + payload


def answer(stream: int, body: bytes = b"ok") -> bytes:
    """Give a whole answer."""
    headers = frame(HEADERS, END_HEADERS, stream, STATUS_200)
    return headers + frame(DATA, END_STREAM, stream, body)


def goaway(last_stream: int, code: int = 0) -> bytes:
    """Say that no stream after this one was, or will be, looked at."""
    return frame(GOAWAY, 0, 0, struct.pack(">II", last_stream, code))


def reset(stream: int, code: int) -> bytes:
    """End a stream without an answer."""
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def http2(respond: Callable[[Connection, int], bytes | None]) -> Behaviour:
    """Give the behaviour that greets and answers each request's stream; None: the end."""

    def behave(connection: Connection) -> None:
        if _read(connection, len(PREFACE)) != PREFACE:
            return
        connection.send(frame(SETTINGS, 0, 0))
        for said in _frames(connection):
            if said.kind == SETTINGS and not said.flags & ACK:
                connection.send(frame(SETTINGS, ACK, 0))
            elif said.kind == PING and not said.flags & ACK:
                connection.send(frame(PING, ACK, 0, said.payload))
            elif said.kind in {HEADERS, DATA} and said.flags & END_STREAM:
                response = respond(connection, said.stream)
                if response is None:
                    return
                connection.send(response)

    return behave


def _frames(connection: Connection) -> Iterator[Frame]:
    while head := _read(connection, 9):
        length = int.from_bytes(head[:3])
        stream = int.from_bytes(head[5:]) & 0x7FFFFFFF
        yield Frame(head[3], head[4], stream, _read(connection, length))


def _read(connection: Connection, length: int) -> bytes:
    read = b""
    while len(read) < length:
        received = connection.socket.recv(length - len(read))
        if not received:
            return b""
        read += received
    return read
