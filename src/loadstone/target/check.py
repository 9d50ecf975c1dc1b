"""Checks of a target before it is measured: a few logins and reads, no load."""

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from loadstone.cloud import Access, Cloud, connect
from loadstone.cloud.access import NEVER_S
from loadstone.cloud.authorities import system_authorities
from loadstone.cloud.cloud import Endpoint
from loadstone.cloud.permission import FLAG, is_loopback
from loadstone.errors import EnvironmentUnusable, LoadstoneError
from loadstone.keystone.clean import LISTS_OWN_DOMAIN
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.resources import ResourceKind
from loadstone.plan.model import Tls
from loadstone.system.http_date import own_date
from loadstone.system.say import Say
from loadstone.target.requirement import Requirement
from loadstone.target.reservation import measured_by

LOGINS = 3
SOON_DAYS = 14.0  # a certificate that is valid for less is named
CONNECT_S = 10.0
DATE_S = 1.0  # a Date header has whole seconds, rounded down (RFC 9110, section 5.6.7)
MOST_APART_S = 5.0  # clocks that are set by NTP differ by milliseconds
OURS = "loadstone-"  # how the names of what runs create begin
ADMIN = "admin"  # by Keystone's policies, who has this role creates users
MEMBER = "member"
USERS_NEED = "give that role, or measure with --users 0"
SHOWN = 3


def check_target(cloud: Cloud, say: Say) -> Iterator[Requirement]:
    """Look at address, certificate, login, rights, leftovers and other measurements.

    Stops at what makes the rest impossible. Creates nothing.
    """
    address = address_of(cloud.endpoint)
    yield address
    if not address.is_there:
        return
    if cloud.endpoint.scheme == "https":
        yield certificate_of(cloud)
    try:
        # The user named the target; these are single requests, not load.
        access = connect(cloud, say, beyond_loopback=True)
    except LoadstoneError as refused:
        yield Requirement("login", False, str(refused))
        return
    with access:
        try:
            yield from _logged_in(access)
        except EnvironmentUnusable as lost:
            yield Requirement("answers", False, str(lost))
    yield other_runs(cloud)


def _logged_in(access: Access) -> Iterator[Requirement]:
    """Check what needs a login; EnvironmentUnusable if the service is lost meanwhile."""
    login = _login(access)
    yield login
    if not login.is_there:
        return
    identity = Identity(access)
    yield clock_of(lambda: own_date(identity.call("/", "GET").headers))
    yield _rights(identity)
    yield from _role(identity)
    yield from _leftovers(identity)


def address_of(endpoint: Endpoint) -> Requirement:
    """Check that the host is known, and say whether it is this machine."""
    try:
        is_here = is_loopback(endpoint.host, endpoint.port)
    except EnvironmentUnusable as unknown:
        return Requirement("address", False, str(unknown))
    where = "this machine" if is_here else f"another machine: load on it needs {FLAG}"
    return Requirement("address", True, f"{endpoint.url} ({where})")


def certificate_of(cloud: Cloud) -> Requirement:
    """Check that the certificate is trusted, and for how long."""
    tls, endpoint = cloud.tls, cloud.endpoint
    if not tls.verify:
        mend = "leave out verify: false (OS_INSECURE)"
        return Requirement("certificate", False, "is not verified", mend, is_needed=False)
    try:
        context = _context(tls)
        with socket.create_connection((endpoint.host, endpoint.port), CONNECT_S) as link:
            began_s = time.monotonic()
            secured = context.wrap_socket(link, server_hostname=endpoint.host)
            took_ms = 1e3 * (time.monotonic() - began_s)
        with secured:
            until = str((secured.getpeercert() or {})["notAfter"])
            version = secured.version()
    except (OSError, KeyError) as problem:
        why = getattr(problem, "verify_message", "") or str(problem)
        # With a client certificate asked for, say, the login may still succeed.
        is_refused = isinstance(problem, ssl.SSLCertVerificationError)
        return Requirement("certificate", False, why, "see below", is_needed=is_refused)
    days = (ssl.cert_time_to_seconds(until) - time.time()) / 86_400
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(until), UTC)
    found = (
        f"{version}, handshake {took_ms:.0f} ms, trusted, valid until {ends:%Y-%m-%d} "
        f"({days:.0f} days)"
    )
    return Requirement(
        "certificate", days >= SOON_DAYS, found, "renew it before it ends", is_needed=False
    )


def _context(tls: Tls) -> ssl.SSLContext:
    authorities = tls.ca_file or system_authorities()
    if isinstance(authorities, bool):
        context = ssl.create_default_context()
    elif os.path.isdir(authorities):
        context = ssl.create_default_context(capath=authorities)
    else:
        context = ssl.create_default_context(cafile=authorities)
    if tls.cert_file is not None:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    return context


def clock_of(ask: Callable[[], str]) -> Requirement:
    """Compare the clock with this machine's; `ask` returns the Date of an answer, or nothing."""
    sent_s = time.time()
    date = ask()
    received_s = time.time()
    try:
        told_s = parsedate_to_datetime(date).timestamp()
    except ValueError:
        found = "not compared: answers have no Date of their own"
        return Requirement("clock", True, found, is_needed=False)
    # It was `told_s`, or up to a second later, at some moment between the two.
    ahead_s, behind_s = told_s - received_s, sent_s - told_s - DATE_S
    apart_s = max(ahead_s, behind_s)
    if apart_s <= 0:
        found = f"this machine's, to within {-ahead_s - behind_s:.1f} s"
    else:
        way = "ahead of" if ahead_s > 0 else "behind"
        found = f"at least {apart_s:.1f} s {way} this machine's"
    mend = "set both clocks by NTP: tokens expire by the service's"
    return Requirement("clock", apart_s <= MOST_APART_S, found, mend, is_needed=False)


def _login(access: Access) -> Requirement:
    """Log in a few times, one after the other."""
    took_ms: list[str] = []
    for _ in range(LOGINS):
        began_s = time.monotonic()
        try:
            access.token(NEVER_S)  # a new one each time
        except EnvironmentUnusable as refused:
            found = f"{refused} (after {len(took_ms) + 1} that succeeded)"  # one connected
            return Requirement("login", False, found)
        took_ms.append(f"{1e3 * (time.monotonic() - began_s):.0f}")
    return Requirement("login", True, f"{access.cloud.who}: {', '.join(took_ms)} ms")


def _rights(identity: Identity) -> Requirement:
    cloud = identity.access.cloud
    response = identity.call("/domains", "GET")
    if response.ok:
        # Readers may list domains, too.
        roles = identity.access.roles()
        if ADMIN in [role.lower() for role in roles]:
            return Requirement("rights", True, f"may list domains, and has the role {ADMIN}")
        has = f"the roles are {', '.join(roles)}, not {ADMIN}" if roles else "there is no role"
        found = f"may list domains; creating users was not tried, and {has}"
        return Requirement("rights", True, found)
    if response.status_code != HTTPStatus.FORBIDDEN:
        found = f"domains were not listed: HTTP {response.status_code} {response.reason}"
        mend = "look at Keystone's log and at its proxy's, and check again"
        return Requirement("rights", False, found, mend, is_needed=False)
    purpose = "to create users"
    return Requirement(
        "rights",
        False,
        f"HTTP {response.status_code}: {cloud.lacks_role(purpose)}",
        USERS_NEED,
        is_needed=False,
    )


def _role(identity: Identity) -> Iterator[Requirement]:
    """Check for the role that users of a run get."""
    try:
        identity.role_id(MEMBER)
    except Refused as refused:
        yield Requirement("role", False, str(refused), USERS_NEED, is_needed=False)
    except EnvironmentUnusable as problem:
        mend = f"create it: openstack role create {MEMBER}"
        yield Requirement("role", False, str(problem), mend, is_needed=False)
    else:
        yield Requirement("role", True, f"{MEMBER}: the users of a run get it")


def _leftovers(identity: Identity) -> Iterator[Requirement]:
    """Look for domains of runs: of earlier ones, or of runs that are still at work."""
    if identity.access.scope_domain_id() is not None:
        why = f"not looked for: {LISTS_OWN_DOMAIN}"
        yield Requirement("leftovers", True, why, is_needed=False)
        return
    try:
        # By name, because a service may list only a part of its domains.
        found = identity.find(ResourceKind.DOMAIN, name__startswith=OURS)
    except Refused:
        return  # the rights say why
    except EnvironmentUnusable as problem:
        yield Requirement("leftovers", False, str(problem), "check again", is_needed=False)
        return
    ids = [one.name.removeprefix(OURS) for one in found if one.name.startswith(OURS)]
    if not ids:
        yield Requirement("leftovers", True, "none of earlier runs", is_needed=False)
        return
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    yield Requirement(
        "leftovers",
        False,
        f"of runs {', '.join(ids[:SHOWN])}{more}, unless these are still at work",
        "on the machine that measured it, with its --store: "
        f"loadstone results clean {ids[0]} {_option(identity.access.cloud)}".rstrip(),
        is_needed=False,
    )


def _option(cloud: Cloud) -> str:
    return cloud.chosen if cloud.chosen.startswith("--") else ""


def other_runs(cloud: Cloud) -> Requirement:
    """Look for measurements of the same service from this machine."""
    if others := measured_by(cloud.endpoint):
        found = " and ".join(others)
        return Requirement("other runs", False, found, "wait for it", is_needed=False)
    return Requirement("other runs", True, "none from this machine", is_needed=False)
