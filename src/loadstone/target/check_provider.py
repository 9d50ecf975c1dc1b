"""Checks of an OpenID provider before it is measured: each operation once, no load."""

import time
from collections.abc import Iterator
from dataclasses import replace

from loadstone.errors import LoadstoneError
from loadstone.oidc.metadata import WELL_KNOWN
from loadstone.oidc.prepare import try_once
from loadstone.oidc.provider import HTTP_OK, Provider
from loadstone.oidc.scenarios import SCENARIOS
from loadstone.oidc.target import OidcIssuer, connected
from loadstone.system.redaction import Redaction
from loadstone.system.say import Say
from loadstone.target.check import (
    address_of,
    certificate_of,
    clock_of,
    other_runs,
)
from loadstone.target.requirement import Requirement

_DISCOVER = "oidc-discover"


def check_provider(choice: OidcIssuer, say: Say) -> Iterator[Requirement]:
    """Look at address, certificate, metadata, keys, and what each scenario sends.

    Stops at what makes the rest impossible. Creates nothing but tokens and sessions.
    """
    redaction = Redaction(choice.secrets)
    for one in _checks(choice, say):
        # A provider may repeat what it was sent.
        yield replace(one, found=redaction.text(one.found))


def _checks(choice: OidcIssuer, say: Say) -> Iterator[Requirement]:
    cloud = choice.cloud
    address = address_of(cloud.endpoint)
    yield address
    if not address.is_there:
        return
    if cloud.endpoint.scheme == "https":
        yield certificate_of(cloud)
    began_s = time.monotonic()
    try:
        # The user named the target; these are single requests, not load.
        with connected(replace(choice, beyond_loopback=True), say) as provider:
            took_ms = 1e3 * (time.monotonic() - began_s)
            yield Requirement("discovery", True, f"{WELL_KNOWN}: {took_ms:.0f} ms")
            yield clock_of(lambda: provider.http.get(provider.metadata.discovery).date)
            yield from _keys(provider)
            yield from _scenarios(provider)
    except LoadstoneError as refused:
        yield Requirement("discovery", False, str(refused))
        return
    yield other_runs(cloud)


def _keys(provider: Provider) -> Iterator[Requirement]:
    """Look for the keys with which tokens are verified; not every provider publishes some."""
    path = provider.metadata.jwks
    if path is None:
        return
    began_s = time.monotonic()
    answer = provider.http.get(path)
    took_ms = 1e3 * (time.monotonic() - began_s)
    keys = answer.json.get("keys")
    if answer.status != HTTP_OK:
        yield Requirement("keys", False, answer.error, is_needed=False)
    elif not isinstance(keys, list) or not keys:
        yield Requirement("keys", False, f"{path} has no keys", is_needed=False)
    else:
        yield Requirement("keys", True, f"{len(keys)} in {took_ms:.0f} ms", is_needed=False)


def _scenarios(provider: Provider) -> Iterator[Requirement]:
    """Try what each scenario sends; one that can be measured is enough."""
    is_any = False
    for name, scenario in SCENARIOS.items():
        if name == _DISCOVER:
            continue  # it was read above, and needs no client
        began_s = time.monotonic()
        try:
            way = try_once(scenario, provider)
        except LoadstoneError as refused:
            why = str(refused).removeprefix(f"{name}: ").removeprefix(f"{provider.url}: ")
            yield Requirement(name, False, why, is_needed=False)
            continue
        is_any = True
        took = f"{1e3 * (time.monotonic() - began_s):.0f} ms"
        if way.login is not None:
            took += f" with a login of {way.login.requests} requests"
        yield Requirement(name, True, took)
    if not is_any:
        mend = f"give what the lines above ask for, or choose --scenario {_DISCOVER}"
        yield Requirement("scenarios", False, "none that needs the client can be measured", mend)
