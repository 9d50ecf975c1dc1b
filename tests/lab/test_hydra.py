import json
import runpy
from http.server import ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

from loadstone.errors import InvalidInput
from loadstone.lab import state
from loadstone.lab.keystone import settings
from loadstone.lab.parts.server import Site
from loadstone.lab.provider import credentials
from loadstone.lab.provider.hydra import LOGIN_PAGE, FrontDoor, Hydra, HydraProgram, program
from loadstone.monitor.roles import Role, role_of

SERVICE = ("service", "hydra")


def test_its_settings_are_read_as_they_are_written() -> None:
    chosen = settings.read([SERVICE, ("scrypt-n", "16384"), ("database", "postgres")])
    assert settings.read(chosen.pairs()) == chosen
    assert settings.read([SERVICE]).database is settings.DatabaseBackend.SQLITE


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        (("service=hydra", "database=mariadb"), "service=hydra has database sqlite, postgres, not"),
        (("service=hydra", "workers=4"), "workers is a setting of Keystone: service=hydra has"),
        (("service=hydra", "heap-mb=256"), "heap-mb needs service=keycloak"),
        (("service=hydra", "scrypt-n=1000"), "scrypt-n must be 0 or a power of 2 from 4"),
        (("scrypt-n=16",), "scrypt-n needs service=oidc-provider or service=hydra: no other has"),
    ],
)
def test_what_it_does_not_have_is_refused_in_one_line(words: tuple[str, ...], mend: str) -> None:
    with pytest.raises(InvalidInput, match=mend) as refused:
        settings.read([settings.split(word) for word in words])
    assert "\n" not in str(refused.value)


def test_secrets_are_in_files_of_the_owner_alone(tmp_path: Path) -> None:
    site = Site(tmp_path, 14444)
    server = Hydra(site, 14445, "http://127.0.0.1:14440", "memory")
    server.prepare(lambda _: None)
    (written,) = (tmp_path / "secret").glob("hydra.json")
    assert written.stat().st_mode & 0o077 == 0
    secret = credentials.client_secret_file(tmp_path).read_text()
    assert json.loads(written.read_text())["secrets"]["system"] == [secret]
    assert "postgres://" not in repr(Hydra(site, 1, "http://127.0.0.1:2", "postgres://u:p@h/d"))


def test_it_is_built_in_a_folder_of_the_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    scratch = state.scratch_folder(tmp_path / "it")

    def build(_: object, half: Path) -> None:
        assert scratch in half.parents
        (half / "hydra").write_text("the program")

    monkeypatch.setattr(HydraProgram, "_build", build)
    HydraProgram(tmp_path / "it", tmp_path / "data").prepare(lambda _: None)
    assert program().read_text() == "the program"
    assert not list(scratch.iterdir())


def test_hydra_and_the_login_page_have_one_address(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    front = FrontDoor(Site(tmp_path, 14440), hydra=14444, login=14446)
    front.prepare(lambda _: None)
    text = front.conf.read_text()
    assert "bind 127.0.0.1:14440" in text
    assert "use_backend login if { path /login /consent /seen }" in text
    assert "server hydra 127.0.0.1:14444" in text
    assert "server login 127.0.0.1:14446" in text


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "password", "is_right"),
    [("u0", "of-u0", True), ("u0", "", False), ("nobody", "", False), ("nobody", "of-u0", False)],
)
def test_only_users_can_log_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, password: str, is_right: bool
) -> None:
    users = tmp_path / "users.json"
    users.write_text(json.dumps([{"username": "u0", "password": "of-u0"}]))
    monkeypatch.setenv("USERS_FILE", str(users))
    monkeypatch.setenv("PORT", "0")
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", ThreadingHTTPServer.server_close)
    pages = runpy.run_path(str(LOGIN_PAGE))["Pages"]
    body = urlencode({"login_challenge": "c", "username": name, "password": password}).encode()
    answers: list[str] = []
    request = SimpleNamespace(
        headers={"Content-Length": str(len(body))},
        rfile=BytesIO(body),
        accept=lambda *_: answers.append("accepted"),
        show_form=lambda _, message: answers.append(message),
    )
    pages.do_POST(request)
    assert answers == ["accepted" if is_right else "Wrong name or password."]


def test_both_are_the_measured_service() -> None:
    assert role_of("hydra") is role_of("loginpage") is Role.KEYSTONE
