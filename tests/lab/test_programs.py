import os
import pwd

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import programs
from loadstone.lab.parts.mariadb import MariaDb
from loadstone.lab.parts.memcached import Memcached
from loadstone.lab.parts.server import Site
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


def test_the_newest_of_a_program_is_found_off_the_path(tmp_path) -> None:
    for version in ("9.6", "15"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        (folder / "odd-server").touch(mode=0o755)
    found = Program("odd-server", "odd", (f"{tmp_path}/*/bin",)).find()
    assert found == str(tmp_path / "15" / "bin" / "odd-server")


@pytest.mark.parametrize("server", [MariaDb, Memcached])
def test_servers_run_as_the_user_whose_files_they_read(
    tmp_path, monkeypatch: pytest.MonkeyPatch, server
) -> None:
    for name in ("LOGNAME", "USER"):
        monkeypatch.setenv(name, "the-one-before-su")
    monkeypatch.setattr(Program, "path", lambda self: self.name)
    begun: list[str] = []
    monkeypatch.setattr(server, "run", lambda _, arguments: begun.extend(arguments))
    site = Site(tmp_path, 15000)
    (MariaDb(site, tmp_path, "secret") if server is MariaDb else Memcached(site)).start()
    assert not [one for one in begun if "the-one-before-su" in one]
    assert [one for one in begun if pwd.getpwuid(os.geteuid()).pw_name in one]
