"""Pure tests: they start no process, listen nowhere, connect to nothing and send no load.

`make check` runs them (`pytest -m pure`). A test is pure by its place, unless it starts a server or
a process by one of the fixtures below, is marked `processes`, or is marked `long` because it takes
seconds. That a pure test really is pure is enforced while it runs.
"""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = {
    *("analysis", "audit", "cli", "cloud", "compare", "diagnosis", "faults", "keystone", "lab"),
    *(
        "monitor",
        "plan",
        "rally",
        "report",
        "search",
        "serve",
        "size",
        "store",
        "study",
        "system",
        "tune",
    ),
    *("virtual", "golden"),
}
FILES = {
    "test_dashboards.py",
    "engine/test_limits.py",
    "engine/test_parquet.py",
    "gate/test_permission.py",
    "observers/test_resources.py",
    "run/test_exit_code.py",
}
EXCEPT = {
    "audit/test_containers.py",
    "cli/test_entry.py",
    "cli/test_fleet.py",
    "cli/test_lost_terminal.py",
    "compare/test_command.py",
    "faults/test_kill.py",
    "keystone/test_reserved.py",
    "lab/test_environment.py",
    "lab/test_guard.py",
    "lab/test_interpreters.py",
    "lab/test_measurement.py",
    "lab/test_ports.py",
    "lab/test_processes.py",
    "monitor/test_apache.py",
    "monitor/test_open.py",
    "monitor/test_service.py",
    "rally/task/test_template.py",
    "report/test_every_format.py",
    "study/test_reference.py",
    "test_fakes.py",
    "serve/test_service.py",
}
# Pure, but of seconds each: they run with the rest, so that `make check` stays within its minute.
LONG = {
    "analysis/test_change_points.py",  # imports SciPy
    "analysis/test_long_runs.py",
    "analysis/test_student.py",  # imports SciPy
    "compare/test_sequential.py",  # imports SciPy
    "compare/test_trimmed.py",  # imports SciPy
    "search/test_evidence.py",
    "search/test_meter.py",
    "search/test_published.py",
    "search/test_refusal.py",
    "study/test_scaling.py",  # imports SciPy
    "tune/test_tuning.py",  # imports SciPy
    "virtual/test_bisect.py",
    "virtual/test_compare.py",
    "virtual/test_tune.py",
}
# Of these folders' conftest.py: each starts a server or a process.
FIXTURES = {"loadstone", "postgresql", "rally_python", "service", "url"}
MARKS = ("processes", "long", "live", "browser", "verify")
FORBIDDEN = {
    *("socket.bind", "socket.connect"),
    *("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"),
}


def is_pure(item: pytest.Item) -> bool:
    """Return whether the test is pure by its place, fixtures and marks."""
    path = item.path.relative_to(TESTS).as_posix()
    folder, _, rest = path.partition("/")
    is_in_place = not rest or folder in FOLDERS or path in FILES
    fixtures = FIXTURES & set(getattr(item, "fixturenames", ()))
    is_marked = any(item.get_closest_marker(name) for name in MARKS)
    return is_in_place and path not in EXCEPT | LONG and not fixtures and not is_marked


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without pure tests for `-m pure`: importing takes as long as the tests."""
    is_file = collection_path.suffix == ".py" and collection_path.is_relative_to(TESTS)
    if config.option.markexpr != "pure" or not is_file:
        return None
    path = collection_path.relative_to(TESTS).as_posix()
    folder, _, rest = path.partition("/")
    can_be = not rest or folder in FOLDERS or path in FILES
    return None if can_be and path not in EXCEPT | LONG else True


class _Guard:
    """The audit hook of this process, which cannot be removed, only switched off."""

    is_installed = False
    is_on = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.is_on and event in FORBIDDEN:
            pytest.fail(f"a pure test must not: {event}{arguments}; see {__file__}")

    def switch(self, *, on: bool) -> None:
        if on and not self.is_installed:
            sys.addaudithook(self)
            self.is_installed = True
        self.is_on = on


GUARD = _Guard()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_pure(item):
            item.add_marker(pytest.mark.pure)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if item.get_closest_marker("pure") is None:
        return (yield)
    import urllib3.util.connection  # noqa: F401  # binds an IPv6 address when it is imported

    # The engine opens its connections without Python's knowledge.
    from loadstone.engine import local

    prepare, local.prepare_in_rust = local.prepare_in_rust, _no_load
    GUARD.switch(on=True)
    try:
        return (yield)
    finally:
        GUARD.switch(on=False)
        local.prepare_in_rust = prepare


def _no_load(*_: object, **__: object) -> None:
    pytest.fail(f"a pure test must not load anything; see {__file__}")
