from pathlib import Path

import pytest

from loadstone.monitor.identity_requests import (
    AccessLogs,
    IdentityRequests,
    KindCount,
    MeasuredCapacity,
    RequestKind,
    kind_of,
    parse,
)

MIDDLEWARE = "nova/34.0.0 keystonemiddleware.auth_token/13.0.1 keystoneauth1/5.18.1"
LOG = f"""\
1000000 POST /v3/auth/tokens 201 loadstone keystoneauth1/5.18.1
1000500 GET /v3/auth/tokens?allow_expired=1 200 python-keystoneclient
1001000 GET /v3/auth/tokens 200 python-keystoneclient
1001200 POST /v3/auth/tokens 201 {MIDDLEWARE}
*** Starting uWSGI 2.0.30 ***
1002001 GET /v3/auth/tokens 200 python-keystoneclient
"""


@pytest.mark.parametrize(
    ("method", "path", "agent", "kind"),
    [
        ("POST", "/v3/auth/tokens", "openstacksdk/4.22.0 keystoneauth1/5.18.1", "login"),
        ("POST", "/v3/auth/tokens", "-", "login"),
        ("POST", "/v3/auth/tokens", MIDDLEWARE, "service login"),
        ("POST", "/v3/auth/tokens", "uwsgi keystoneauth1/5.18.1", "service login"),
        ("GET", "/v3/auth/tokens?allow_expired=1", "python-keystoneclient", "validation"),
        ("HEAD", "/v3/auth/tokens", "-", "validation"),
        ("DELETE", "/v3/auth/tokens", "-", "revocation"),
        ("GET", "/v3", "uwsgi keystoneauth1/5.18.1", "discovery"),
        ("GET", "/", "-", "discovery"),
        ("GET", "/v3/users?name=a", "-", "other"),
    ],
)
def test_each_request_is_of_one_kind(method: str, path: str, agent: str, kind: str) -> None:
    assert kind_of(method, path, agent) == kind


def test_only_the_requests_between_two_moments_are_counted(tmp_path: Path) -> None:
    assert len(list(parse(LOG.splitlines()))) == 5
    file = tmp_path / "uwsgi-access.log"
    file.write_text(LOG)
    logs = AccessLogs((file, tmp_path / "of-a-node-that-nobody-asked.log"))
    found = logs.caused(1000.0, 1002.0, iterations=2)
    assert {one.kind: one.count for one in found.kinds} == {
        RequestKind.LOGIN: 1,
        RequestKind.VALIDATION: 2,
        RequestKind.SERVICE_LOGIN: 1,
    }
    assert found.per_iteration(RequestKind.VALIDATION) == 1.0
    assert found.total_per_iteration == 1.5  # without what services do for their own tokens


def test_what_comes_without_load_is_taken_off(tmp_path: Path) -> None:
    file = tmp_path / "uwsgi-access.log"
    file.write_text(LOG)
    logs = AccessLogs((file,), {RequestKind.VALIDATION: 0.5})
    assert logs.caused(1000.0, 1002.0, 1).per_iteration(RequestKind.VALIDATION) == 1.0


def test_the_bound_is_where_logins_and_validations_fill_keystone() -> None:
    kinds = (KindCount(RequestKind.LOGIN, 10, 0.0), KindCount(RequestKind.VALIDATION, 30, 0.0))
    login = MeasuredCapacity(RequestKind.LOGIN, 20.0, "r1")
    validation = MeasuredCapacity(RequestKind.VALIDATION, 100.0, "r2")
    # 1 login takes 1/20 s of Keystone, 3 validations 3/100 s.
    both = IdentityRequests(10, kinds, (login, validation))
    assert both.bound_rps == pytest.approx(12.5)
    assert IdentityRequests(10, kinds, (login,)).bound_rps is None
    assert IdentityRequests(10, kinds[:1], (login,)).bound_rps == pytest.approx(20.0)
    assert IdentityRequests(0, kinds, (login, validation)).bound_rps is None
