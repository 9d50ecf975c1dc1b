"""What a study needs is known before its first cell."""

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.programs import Program
from loadstone.study import needs, read
from loadstone.study.show import describe_builtin

STUDY = read.find("sql-per-request").study(quick=True)


def test_a_study_does_not_begin_without_its_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"memcached": "/usr/bin/memcached"}
    monkeypatch.setattr(Program, "find", lambda program: there.get(program.name))
    with pytest.raises(EnvironmentUnusable) as refused:
        needs.require(STUDY)
    assert str(refused.value) == (
        "study sql-per-request: not installed: mariadbd, mariadb-install-db; install: apt-get "
        "install mariadb-server"
    )


def test_a_study_whose_servers_are_there_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "find", lambda program: f"/usr/bin/{program.name}")
    needs.require(STUDY)


@pytest.mark.parametrize("name", read.builtin())
def test_the_list_names_the_packages_of_every_study(name: str) -> None:
    source = read.find(name)
    line = describe_builtin(source)
    assert all(package in line for package in needs.packages(source.study(quick=False)))


def test_a_study_of_every_server_names_them_all() -> None:
    assert needs.packages(STUDY) == ("mariadb-server", "memcached")
