import pytest

from loadstone.errors import InvalidInput
from loadstone.store import location


def test_a_folder_is_a_folder():
    assert str(location.read("some/folder")) == "some/folder"
    assert location.read("some/folder").database is None


def test_the_home_folder_may_be_written_as_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert str(location.read("~/results")) == "/home/ann/results"


def test_an_empty_name_is_not_the_working_directory():
    with pytest.raises(InvalidInput, match="--store: is empty"):
        location.read("")


def test_a_folder_is_shown_also_if_the_variable_that_it_replaces_is_invalid(monkeypatch):
    monkeypatch.setenv(location.VARIABLE, "mysql://db/results")
    assert location.read("some/folder").option == " --store some/folder"


def test_a_url_has_a_database_and_a_folder_for_files():
    read = location.read("postgresql://ann:s%40cret@db.example:5433/results?files=/srv/results")
    assert str(read.folder) == "/srv/results"
    assert read.database.password == "s@cret"
    assert (read.database.host, read.database.port) == ("db.example", 5433)
    assert str(read) == "postgresql://ann@db.example:5433/results?files=/srv/results"


def test_without_files_each_database_has_a_folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    one = location.read("postgresql://ann@db.example/results").folder
    other = location.read("postgres://ann@db.example/staging").folder
    assert one == tmp_path / "postgresql" / "db.example-5432-results"
    assert other == tmp_path / "postgresql" / "db.example-5432-staging"


def test_secret_parameters_are_not_shown():
    read = location.read("postgresql://db/results?password=s3cret-1&sslpassword=s3cret-2")
    assert location.secrets(read.database) == {"s3cret-1", "s3cret-2"}
    assert "s3cret" not in str(read)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s@cret@db/results",
        "postgresql://ann:s/cret@db/results",
        "postgresql://ann:s cret@db/results",
        "postgresql://ann:cret@db:port/results",
        "mysql://ann:cret@db/results",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url):
    with pytest.raises(InvalidInput, match=r"^--store: (?!.*cret).*(percent|postgresql://USER)"):
        location.read(url)


def test_the_variable_names_the_usual_store(monkeypatch, tmp_path):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    monkeypatch.delenv(location.VARIABLE, raising=False)
    assert location.usual().folder == tmp_path / "results"
    monkeypatch.setenv(location.VARIABLE, str(tmp_path / "other"))
    assert location.usual().folder == tmp_path / "other"
    monkeypatch.setenv(location.VARIABLE, "mysql://db/results")
    with pytest.raises(InvalidInput, match=r"^LOADSTONE_STORE: mysql://"):
        location.usual()
