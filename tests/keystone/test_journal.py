"""The journal where the disk is full, or has lost something."""

import resource

import pytest

from loadstone.keystone.clean import clean
from loadstone.keystone.contexts.users import UsersSettings, users
from loadstone.keystone.journal import Journal, Unwritable, read
from loadstone.keystone.resources import ResourceKind

RUN = "20261121-0931-ab12cd"


def test_what_a_full_disk_cuts_short_is_taken_back(access, journal):
    book = Journal.start(journal, RUN, access)
    book.create(ResourceKind.USER, "first")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = journal.stat().st_size + 20
    resource.setrlimit(resource.RLIMIT_FSIZE, (full, most))
    try:
        with pytest.raises(Unwritable, match="cannot be written"):
            book.create(ResourceKind.USER, "second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    book.create(ResourceKind.USER, "third")
    record = read(journal)
    assert [thing.name for thing in record.remaining] == ["first", "third"]
    assert record.unread == ()


def test_what_a_kill_cuts_short_is_no_line(access, journal):
    Journal.start(journal, RUN, access).create(ResourceKind.USER, "first")
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"event": "cre')
    assert read(journal).unread == ()
    Journal(journal, RUN)
    assert journal.read_bytes() == whole


def test_a_damaged_line_is_named_with_where_to_look(fake, access, journal, said):
    fake.disturb = lambda method, _path: 409 if method == "DELETE" else None
    with users(access, RUN, UsersSettings(1, 1), journal, said.append):
        pass
    target, _, *rest = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([target, b'{"event": "create", "kin\0\0\n', *rest]))
    fake.disturb = lambda _method, _path: None
    said.clear()
    assert clean(access, journal, said.append) == ()
    assert said[0].startswith(f"{journal}:2: cannot be read; what it named may be left")
    assert said[0].endswith(f"names that begin with loadstone-{RUN}")
    assert fake.names("users") == fake.names("domains") == []
