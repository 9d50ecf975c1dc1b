from pathlib import Path

from loadstone.lab import logs


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_exception_is_shown_and_not_what_came_after_it(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "uwsgi.log",
        "*** Starting ***",
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in <module>',
        "oslo_config.cfg.ConfigFileValueError: Value for option debug is not valid",
        "VACUUM: unlinked",
        "goodbye",
    )
    shown = logs.explain((path,))
    assert shown.splitlines()[-1].strip().startswith("oslo_config.cfg.ConfigFileValueError")


def test_the_log_that_tells_is_preferred(tmp_path: Path) -> None:
    dull = written(tmp_path, "dull.log", "started", "ended")
    telling = written(tmp_path, "telling.log", "ERROR no such table")
    assert "no such table" in logs.explain((dull, telling))


def test_without_an_error_the_last_lines_are_shown(tmp_path: Path) -> None:
    path = written(tmp_path, "a.log", *(f"line {i}" for i in range(50)))
    assert "line 49" in logs.explain((path,))
    assert "line 20" not in logs.explain((path,))


def test_missing_logs_are_said_to_be_empty(tmp_path: Path) -> None:
    assert "empty" in logs.explain((tmp_path / "none.log",))


def test_as_many_lines_are_shown_as_asked_for(tmp_path: Path) -> None:
    lines = [f"line {i} {'x' * 50}" for i in range(10_000)]
    path = written(tmp_path, "long.log", *lines)
    for count in (1, 20, 5000, 9_999, 10_000):
        assert logs.tail(path, count) == tuple(lines[-count:])
    assert logs.tail(path, 20_000) == tuple(lines)
    one_line = written(tmp_path, "one.log", "x" * 200_000)
    assert logs.tail(one_line, 3) == ("x" * 200_000,)
