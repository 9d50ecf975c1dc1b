import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import programs
from loadstone.lab.programs import Program


def test_all_that_is_missing_is_named_with_one_command() -> None:
    lacking = (
        Program("python3", "python3"),
        Program("no-such-server", "server"),
        Program("/no/such/module.so", "server-module"),
        Program("no-such-tool", "server"),
    )
    with pytest.raises(EnvironmentUnusable, match=r"apt-get install server server-module$"):
        programs.check(lacking)


def test_a_program_is_found_off_the_path(tmp_path) -> None:
    for version in ("9", "15"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        (folder / "odd-server").touch(mode=0o755)
    found = Program("odd-server", "odd", (f"{tmp_path}/*/bin",)).find()
    assert found is not None
    assert found.endswith("/bin/odd-server")
