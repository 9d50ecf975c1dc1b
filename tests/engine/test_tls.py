import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from authority import Authority
from loopback import GET, OK, Behaviour, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Placement, Plan, Tls


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


def over_tls(context: ssl.SSLContext, behaviour: Behaviour) -> Behaviour:
    def behave(connection: Connection) -> None:
        with context.wrap_socket(connection.socket, server_side=True) as wrapped:
            connection.socket = wrapped
            behaviour(connection)

    return behave


Secure = Callable[[Tls], Plan]


@pytest.fixture
def context(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server"))
    return context


@pytest.fixture
def secure(serve: Serve, context: ssl.SSLContext) -> Secure:
    """Give plans for a server over TLS."""
    server = serve(over_tls(context, answering(OK)))

    def plan(tls: Tls) -> Plan:
        origin = replace(server.origin, scheme="https", tls=tls)
        return Plan(origin, (GET,), ClosedLoad(2, iterations=6))

    return plan


def outcomes(plan: Plan) -> Counter[Outcome]:
    return Counter(Outcome(code) for code in run(plan).samples.outcome)


def test_a_certificate_of_a_known_authority_is_believed(
    secure: Secure, authority: Authority
) -> None:
    measured = run(secure(Tls(ca_file=str(authority.file))))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 6}
    assert measured.health.connections == 2


def test_tls_1_2_will_do(secure: Secure, context: ssl.SSLContext, authority: Authority) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert outcomes(secure(Tls(ca_file=str(authority.file)))) == {Outcome.OK: 6}


def test_a_certificate_of_another_authority_is_not_believed(secure: Secure, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    assert outcomes(secure(Tls(ca_file=str(other.file)))) == {Outcome.TLS_FAILED: 6}


def test_the_systems_authorities_do_not_know_it(secure: Secure) -> None:
    assert outcomes(secure(Tls())) == {Outcome.TLS_FAILED: 6}


def test_insecure_believes_anyone(secure: Secure) -> None:
    assert outcomes(secure(Tls(verify=False))) == {Outcome.OK: 6}


def test_a_certificate_for_another_name_is_not_believed(
    secure: Secure, authority: Authority
) -> None:
    plan = secure(Tls(ca_file=str(authority.file)))
    plan = replace(plan, origin=replace(plan.origin, host="localhost"))
    assert set(outcomes(plan)) <= {Outcome.TLS_FAILED, Outcome.REFUSED}
    assert outcomes(plan)[Outcome.TLS_FAILED] > 0


def test_a_self_signed_certificate_given_as_its_own_authority_is_believed(
    secure: Secure, context: ssl.SSLContext, authority: Authority
) -> None:
    itself = authority.itself()
    context.load_cert_chain(itself)
    plan = secure(Tls(ca_file=str(itself)))
    assert outcomes(plan) == {Outcome.OK: 6}
    # The same authority, but not the same certificate.
    assert outcomes(secure(Tls(ca_file=str(authority.file)))) == {Outcome.TLS_FAILED: 6}
    # Nor for another name.
    elsewhere = outcomes(replace(plan, origin=replace(plan.origin, host="localhost")))
    assert set(elsewhere) <= {Outcome.TLS_FAILED, Outcome.REFUSED}
    assert elsewhere[Outcome.TLS_FAILED] > 0


def test_a_certificate_that_has_expired_is_named(
    secure: Secure, context: ssl.SSLContext, authority: Authority
) -> None:
    itself = authority.itself(days_ago=3)
    context.load_cert_chain(itself)
    assert outcomes(secure(Tls(ca_file=str(itself)))) == {Outcome.CERTIFICATE_EXPIRED: 6}
    context.load_cert_chain(authority.issue("late", days_ago=3))
    ours = secure(Tls(ca_file=str(authority.file)))
    assert outcomes(ours) == {Outcome.CERTIFICATE_EXPIRED: 6}
    over_http2 = replace(ours, placement=Placement(http="2"))
    assert outcomes(over_http2) == {Outcome.CERTIFICATE_EXPIRED: 6}


def test_a_server_may_ask_for_our_certificate(
    secure: Secure, context: ssl.SSLContext, authority: Authority
) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    ours = str(authority.issue("client"))
    known = Tls(ca_file=str(authority.file), cert_file=ours)
    assert outcomes(secure(known)) == {Outcome.OK: 6}
    assert outcomes(secure(replace(known, key_file=ours))) == {Outcome.OK: 6}
    without = outcomes(secure(Tls(ca_file=str(authority.file))))
    assert Outcome.OK not in without
    # The refusal arrives as an alert, or as a reset when it crosses our request.
    assert set(without) <= {Outcome.TLS_FAILED, Outcome.RESET, Outcome.CLOSED_EARLY}


def test_a_server_that_speaks_no_tls_fails_the_handshake(serve: Serve) -> None:
    server = serve(lambda connection: connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    origin = replace(server.origin, scheme="https", tls=Tls(verify=False))
    assert outcomes(Plan(origin, (GET,), ClosedLoad(1, iterations=1))) == {Outcome.TLS_FAILED: 1}


@pytest.mark.parametrize(
    ("connection", "wanted", "resumed"),
    [
        ("kept", None, True),
        ("kept", False, False),
        ("iteration", None, False),
        ("request", None, False),
        ("request", True, True),
    ],
)
def test_new_connections_resume_tls_sessions_only_where_that_is_wanted(
    serve: Serve,
    context: ssl.SSLContext,
    connection: Literal["kept", "iteration", "request"],
    wanted: bool | None,
    resumed: bool,
) -> None:
    seen: list[bool | None] = []

    def behave(connection: Connection) -> None:
        with context.wrap_socket(connection.socket, server_side=True) as wrapped:
            seen.append(wrapped.session_reused)
            connection.socket = wrapped
            connection.request()
            connection.send(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    origin = replace(serve(behave).origin, scheme="https", tls=Tls(verify=False))
    plan = Plan(
        origin,
        (GET,),
        ClosedLoad(1, iterations=4),
        connection=connection,
        placement=Placement(tls_resumption=wanted),
    )
    measured = run(plan)
    assert Counter(measured.samples.outcome) == {Outcome.OK: 4}
    assert seen == [False, *[resumed] * 3]
    assert measured.health.tls_resumption == resumed
