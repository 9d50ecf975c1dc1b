"""The journal where the disk is full, or has lost something."""

import resource

import pytest
from made_users import users

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.clean import clean
from loadstone.keystone.contexts.model import Users
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
    with users(access, RUN, Users(1, 1), journal, said.append):
        pass
    target, _, *rest = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([target, b'{"event": "create", "kin\0\0\n', *rest]))
    fake.disturb = lambda _method, _path: None
    said.clear()
    assert clean(access, journal, said.append) == ()
    assert said[0].startswith(f"{journal}:2: cannot be read; what it named may be left")
    assert said[-1] == f"removed all that its journal tells of in {access.identity_url}"
    assert said[0].endswith(f"names that begin with loadstone-{RUN}")
    assert fake.names("users") == fake.names("domains") == []


@pytest.mark.parametrize("target", ["/etc/hosts", "../../elsewhere", "../../created.jsonl"])
def test_a_journal_that_is_a_symbolic_link_is_neither_read_nor_written(access, journal, target):
    outside = journal.parent / "outside"
    outside.write_text("kept")
    for whither in (target, str(outside)):
        journal.symlink_to(whither)
        with pytest.raises(EnvironmentUnusable, match="it is a symbolic link"):
            read(journal)
        with pytest.raises(Unwritable, match="it is a symbolic link"):
            Journal.start(journal, RUN, access)
        journal.unlink()
    assert outside.read_text() == "kept"


def test_a_link_to_the_journal_of_another_run_is_followed(access, tmp_path):
    for name in ("maker", "later"):
        (tmp_path / name).mkdir()
    maker, later = (tmp_path / name / "created.jsonl" for name in ("maker", "later"))
    Journal.start(maker, RUN, access).create(ResourceKind.USER, "first")
    later.symlink_to("../maker/created.jsonl")
    Journal(later, RUN).create(ResourceKind.USER, "second")
    assert [thing.name for thing in read(maker).remaining] == ["first", "second"]
    assert read(later).remaining == read(maker).remaining
    maker.unlink()
    maker.symlink_to("/etc/hosts")
    with pytest.raises(EnvironmentUnusable, match="it is a symbolic link"):
        read(later)
