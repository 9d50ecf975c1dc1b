"""Folded stacks as py-spy writes them, and what is made of them."""

from dataclasses import replace

import pytest

from loadstone.diagnosis.cpu_profile import (
    LEAST_SHARE,
    CpuProfile,
    busy,
    flame,
    folded,
    parts,
    read_folded,
)
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.monitor.service import ServiceProcess
from loadstone.observers.profile import require_profiler

WEB = "application (oslo_middleware/base.py:12);dispatch (flask/app.py:9)"
HASH = f"{WEB};verify (keystone/common/password_hashers/bcrypt.py:54)"
SQL = f"{WEB};get_user (keystone/identity/backends/sql.py:7);execute (sqlalchemy/orm/session.py:3)"
DRIVER = f"{SQL};execute (sqlalchemy/engine/default.py:5);query (pymysql/cursors.py:1)"
RE = f"{WEB};validate (jsonschema/validators.py:2);match (re/__init__.py:8)"


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        (HASH, "password hashing"),
        (SQL, "SQL ORM"),
        (DRIVER, "SQL driver"),
        (RE, "JSON schema"),  # the standard library counts for its caller
        (f"{WEB};enforce (oslo_policy/policy.py:1)", "policy"),
        (f"{WEB};encrypt (cryptography/fernet.py:1)", "token crypto"),
        (f"{WEB};get (dogpile/cache/region.py:1);loads (json/__init__.py:1)", "serialisation"),
        (f"{WEB};get_catalog (keystone/catalog/core.py:1)", "catalog"),
        (f"{WEB};collect (gc.py:1)", "garbage collection"),
        (WEB, "middleware"),
        ("run (threading.py:1)", "other"),
    ],
)
def test_a_stack_counts_for_its_innermost_known_function(stack, name):
    (part,) = parts(read_folded([f"{stack} 5\n"]))
    assert (part.name, part.samples) == (name, 5)


def test_workers_and_lines_of_one_function_are_added_up():
    found = read_folded([f"{HASH} 3\n{SQL} 1\n", f"{HASH.replace(':54', ':40')} 4\n"])
    assert sorted(found.values()) == [1, 7]
    assert [(one.name, one.samples) for one in parts(found)] == [
        ("password hashing", 7),
        ("SQL ORM", 1),
    ]
    assert read_folded([folded(found)]) == found


def test_the_flame_graph_has_each_caller_below_what_it_calls():
    tree = flame(read_folded([f"{HASH} 6\n{SQL} 4\n"]))
    assert tree.samples == 10
    (base,) = tree.children
    (dispatch,) = base.children
    assert base.name == "application (oslo_middleware/base.py)"
    assert sorted(one.samples for one in dispatch.children) == [4, 6]


def test_frames_too_narrow_to_be_seen_are_left_out():
    tree = flame(read_folded([f"{HASH} {int(2 / LEAST_SHARE)}\nrare (x.py:1) 1\n"]))
    assert [one.name for one in tree.children] == ["application (oslo_middleware/base.py)"]


def test_a_worker_that_waits_for_its_next_request_is_idle():
    stacks = busy(read_folded([f"{HASH} 250\n<module> (uwsgi:10) 740\n"]))
    assert sum(stacks.values()) == 250
    seen = CpuProfile(10.0, 50, 2, 250, parts(stacks), flame(stacks), 0.5, threads=1)
    assert seen.idle == pytest.approx(0.75)


def test_each_thread_of_a_worker_has_samples_of_its_own():
    """Two workers of four threads, half of them busy: 2,000 samples of 4,000."""
    stacks = busy(read_folded([f"{HASH} 2000\n"]))
    seen = CpuProfile(10.0, 50, 2, 2000, parts(stacks), flame(stacks), 0.5, threads=4)
    assert seen.idle == pytest.approx(0.5)
    assert replace(seen, threads=None).idle is None


def test_without_py_spy_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(EnvironmentUnusable, match=r"pip install py-spy"):
        require_profiler(lambda: (ServiceProcess(1, "uwsgi"),))


def test_a_service_elsewhere_cannot_be_profiled():
    with pytest.raises(InvalidInput, match="--lab NAME"):
        require_profiler(lambda: None)
