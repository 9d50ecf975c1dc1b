"""`--with service=flask-reference`: a plain token service behind the lab's web servers."""

import pytest
import requests
from lab_client import quietly

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

pytestmark = pytest.mark.live


def test_it_issues_and_validates_tokens_of_its_administrator(name: str) -> None:
    chosen = settings.read([("service", "flask-reference"), ("workers", "1")])
    lab = deployment.up(name, chosen, quietly, owned=True)
    assert dict(lab.facts())["release"] == "Flask reference service"
    assert lab.is_running
    given = lab.environment_variables()

    def log_in(password: str) -> requests.Response:
        user = {"name": "admin", "domain": {"id": "default"}, "password": password}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": {"project": {"id": "admin"}}}}
        return requests.post(f"{lab.url}/auth/tokens", json=body, timeout=30)

    issued = log_in(given["OS_PASSWORD"])
    assert issued.status_code == 201
    token = issued.headers["X-Subject-Token"]
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    shown = requests.get(f"{lab.url}/auth/tokens", headers=headers, timeout=30)
    assert shown.json() == issued.json()
    headers["X-Subject-Token"] = "unknown"
    assert requests.get(f"{lab.url}/auth/tokens", headers=headers, timeout=30).status_code == 404
    assert log_in("wrong").status_code == 401
    refused = requests.get(f"{lab.url}/users", headers=headers, timeout=30)
    assert "--users 0" in refused.json()["error"]["message"]
