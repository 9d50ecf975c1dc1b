"""OpenLDAP's slapd, by its cn=Monitor.

The two LDAP messages that this needs are encoded here (RFC 4511): no kept LDAP client is pure
Python.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from loadstone.monitor.metrics import Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.service_source import KeptSource
from loadstone.monitor.sources.sockets import MOST_BYTES, Link, connect

BASE = "cn=Monitor"
ATTRIBUTES = ("monitorCounter", "monitorOpCompleted", "monitoredInfo")
# Entry below cn=Monitor, in lower case: attribute, ours.
ENTRIES = {
    "cn=current,cn=connections": ("monitorCounter", "connections"),
    "cn=total,cn=connections": ("monitorCounter", "connections_total"),
    "cn=max file descriptors,cn=connections": ("monitorCounter", "connections_limit"),
    "cn=bind,cn=operations": ("monitorOpCompleted", "binds_total"),
    "cn=search,cn=operations": ("monitorOpCompleted", "searches_total"),
    "cn=operations": ("monitorOpCompleted", "operations_total"),
    "cn=active,cn=threads": ("monitoredInfo", "slots_busy"),
    "cn=max,cn=threads": ("monitoredInfo", "slots"),
    "cn=pending,cn=threads": ("monitoredInfo", "queue"),
}
SEQUENCE, STRING, INTEGER, ENUMERATED, BOOLEAN = 0x30, 0x04, 0x02, 0x0A, 0x01
BIND, BOUND, SEARCH, ENTRY, DONE = 0x60, 0x61, 0x63, 0x64, 0x65
SIMPLE, PRESENT = 0x80, 0x87


@dataclass(slots=True)
class SlapdSource(KeptSource[Link]):
    """One server, on a kept connection."""

    def read(self) -> Iterator[Reading]:
        """Read connections, operations and threads."""
        try:
            found = list(self._entries())
        except (OSError, Unreadable, IndexError):
            self.close()
            raise
        for dn, values in found:
            entry = dn.lower().removesuffix(f",{BASE.lower()}")
            attribute, ours = ENTRIES.get(entry, ("", ""))
            with suppress(KeyError, ValueError):
                yield Reading(self.name, ours, float(values[attribute]))

    def _entries(self) -> Iterator[tuple[str, dict[str, str]]]:
        if self._link is None:
            self._link = connect(self.address)
            login = (
                _tlv(INTEGER, b"\3")
                + _tlv(STRING, self.address.user.encode())
                + _tlv(SIMPLE, self.address.password.encode())
            )
            self._link.sendall(_message(1, _tlv(BIND, login)))
            if _result(*_operation(self._link)) != 0:
                raise Unreadable("it refuses the bind")
        self._link.begin()
        self._link.sendall(_message(2, _search()))
        while True:
            tag, content = _operation(self._link)
            if tag == DONE:
                if _result(tag, content) != 0:
                    raise Unreadable(f"it refuses to read {BASE}")
                return
            if tag == ENTRY:
                yield _entry(content)


def _search() -> bytes:
    subtree, never = b"\2", b"\0"
    attributes = b"".join(_tlv(STRING, name.encode()) for name in ATTRIBUTES)
    return _tlv(
        SEARCH,
        _tlv(STRING, BASE.encode())
        + _tlv(ENUMERATED, subtree)
        + _tlv(ENUMERATED, never)
        + _tlv(INTEGER, b"\0")
        + _tlv(INTEGER, b"\2")  # seconds
        + _tlv(BOOLEAN, b"\0")
        + _tlv(PRESENT, b"objectClass")
        + _tlv(SEQUENCE, attributes),
    )


def _message(number: int, operation: bytes) -> bytes:
    return _tlv(SEQUENCE, _tlv(INTEGER, bytes([number])) + operation)


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _operation(link: socket.socket) -> tuple[int, bytes]:
    """Read one message; return its operation's tag and content."""
    head = _exactly(link, 2)
    size = head[1]
    if size & 0x80:
        size = int.from_bytes(_exactly(link, size & 0x7F), "big")
    (_, _), (tag, content), *_ = _elements(_exactly(link, size))
    return tag, content


def _exactly(link: socket.socket, count: int) -> bytes:
    if count > MOST_BYTES:
        raise Unreadable(f"its answer is longer than {MOST_BYTES} bytes")
    received = bytearray()
    while len(received) < count:
        chunk = link.recv(count - len(received))
        if not chunk:
            raise Unreadable("it closed the connection")
        received += chunk
    return bytes(received)


def _elements(content: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(content):
        tag, size = content[at], content[at + 1]
        at += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(content[at : at + count], "big")
            at += count
        found.append((tag, content[at : at + size]))
        at += size
    return found


def _result(tag: int, content: bytes) -> int:
    if tag not in (BOUND, DONE):
        raise Unreadable("it does not speak LDAP")
    return int.from_bytes(_elements(content)[0][1], "big")


def _entry(content: bytes) -> tuple[str, dict[str, str]]:
    (_, dn), (_, attributes) = _elements(content)
    values = {}
    for _, attribute in _elements(attributes):
        (_, name), (_, members) = _elements(attribute)
        first = _elements(members)
        if first:
            values[name.decode()] = first[0][1].decode("utf-8", "replace")
    return dn.decode("utf-8", "replace"), values
