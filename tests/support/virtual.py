"""The command line in virtual time: commands that load simulated services, in this process.

Everything between the options and the exit code is real but three things: the engine, the clock,
and the network that is used to prepare a load.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from fake_keystone import PASSWORD, FakeKeystone
from keystoneauth1.session import Session
from requests.adapters import BaseAdapter
from simulator.engine import VirtualEngine
from simulator.loads import SimulatedService
from simulator.service import Service
from simulator.time import VirtualTime

from loadstone.audit.kept import Kept
from loadstone.cli import main
from loadstone.cloud import Access, from_clouds_yaml, from_environment
from loadstone.cloud.cloud import Cloud
from loadstone.keystone.resources import User
from loadstone.run.backend import Backend
from loadstone.system.say import Say
from loadstone.target.choice import NamedTarget, OwnLab, ReferenceService, TargetChoice
from loadstone.target.target import Target

FIRST_PORT = 5000


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    engine: VirtualEngine  # which sent its loads
    seconds: float  # of virtual time

    @property
    def data(self) -> Any:
        """The JSON on standard output."""
        return json.loads(self.stdout)


class _NoNetwork(BaseAdapter):
    """Gives requests of the preparation to a fake Keystone, without a socket."""

    def __init__(self, fake: FakeKeystone) -> None:
        super().__init__()
        self._fake = fake

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        url = urlsplit(str(request.url))
        body = json.loads(request.body) if request.body else None
        call = _Call(str(request.method), url.path, {"Host": url.netloc, **request.headers})
        refused = self._fake.disturb(call.command, call.path)
        with self._fake.lock:  # users are created in parallel
            done = self._fake.carry_out(call, url, body) if refused is None else (refused, None)
        status, value, *headers = done
        response = requests.Response()
        response.status_code, response.url, response.request = status, str(request.url), request
        response.headers.update({"Content-Type": "application/json", **dict(*headers)})
        response._content = b"" if value is None else json.dumps(value).encode()
        return response

    def close(self) -> None:
        """Close nothing."""


@dataclass(frozen=True)
class _Call:
    command: str
    path: str
    headers: Mapping[str, str]


def _accessed(cloud: Cloud, fake: FakeKeystone) -> Access:
    connections = requests.Session()
    connections.mount("http://", _NoNetwork(fake))
    return Access(cloud, cloud.endpoint, Session(auth=cloud.auth, session=connections))


@dataclass
class VirtualCommandLine:
    """`loadstone` in virtual time, with a store of its own.

    `services` are the targets: that of the OS_* variables, or an entry of clouds.yaml each.
    """

    home: Path
    capfd: pytest.CaptureFixture[str] | None  # None: what is printed is of no interest
    monkeypatch: pytest.MonkeyPatch
    fake: FakeKeystone = field(default_factory=FakeKeystone)

    def __call__(
        self,
        *words: str,
        service: Service | None = None,
        clouds: Mapping[str, Service] | None = None,
        lab: Callable[[Mapping[str, str]], Service] | None = None,
        seed: int = 0,
        lag_s: float = 0.0,
        failure: Callable[[float], str | None] = lambda _: None,
        is_away: Callable[[], bool] = lambda: False,
        users: tuple[User, ...] = (),
    ) -> Ended:
        named = {"": service or Service(), **(clouds or {})}
        ports = {name: FIRST_PORT + number for number, name in enumerate(named)}
        simulated = {
            ports[name]: SimulatedService(one, seed * 1000 + ports[name], is_away)
            for name, one in named.items()
        }
        self._write_clouds(ports)
        time = VirtualTime()
        engine = VirtualEngine(simulated, time, lag_s)

        @contextmanager
        def connected(choice: TargetChoice, _: Say) -> Iterator[Target]:
            if isinstance(choice, OwnLab | ReferenceService):
                if lab is None:
                    raise AssertionError("this command starts a service")
                port = FIRST_PORT + 100 + len(simulated)
                made = lab(dict(choice.settings.pairs()) if isinstance(choice, OwnLab) else {})
                simulated[port] = SimulatedService(made, seed * 1000 + port, is_away)
                variables = _variables(port)
                access = _accessed(from_environment(variables), self.fake)
                yield Target(access)
                return
            assert isinstance(choice, NamedTarget)
            cloud = from_clouds_yaml(choice.cloud) if choice.cloud else from_environment(os.environ)
            access = _accessed(cloud, self.fake)
            yield Target(access, failure=lambda: failure(time.now_s), users=lambda: users)

        code = self._carry_out(
            words, Backend(connected, engine, lambda *_: Kept(), seed), _variables(ports[""])
        )
        printed = self.capfd.readouterr() if self.capfd else ("", "")
        return Ended(code, *printed, engine, time.now_s)

    def _write_clouds(self, ports: Mapping[str, int]) -> None:
        clouds = {
            name: {
                "auth": {
                    name.removeprefix("OS_").lower(): value
                    for name, value in _variables(port).items()
                },
                "identity_api_version": 3,
            }
            for name, port in ports.items()
            if name
        }
        (self.home / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))

    def _carry_out(
        self, words: tuple[str, ...], backend: Backend, variables: Mapping[str, str]
    ) -> int:
        with self.monkeypatch.context() as here:
            for name, value in variables.items():
                here.setenv(name, value)
            here.setenv("LOADSTONE_HOME", str(self.home / "home"))
            here.setenv("OS_CLIENT_CONFIG_FILE", str(self.home / "clouds.yaml"))
            here.chdir(self.home)
            here.setattr("sys.argv", ["loadstone", *words])
            with pytest.raises(SystemExit) as ended:
                main(backend)
        return int(ended.value.code or 0)


def _variables(port: int) -> dict[str, str]:
    return {
        "OS_AUTH_URL": f"http://127.0.0.1:{port}/v3",
        "OS_USERNAME": "admin",
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }
