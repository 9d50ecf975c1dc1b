"""Turns a collected document into facts for the rules."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, HostFacts, Value, merged
from loadstone.audit.readers import (
    balancer,
    cache,
    capacity,
    database,
    host,
    keycloak,
    keystone,
    others,
    web,
)

READERS = (host, web, keystone, keycloak, database, cache, balancer, others)
MOST = 1e18  # above any size, count or time of a real host
# Errors of readers on a document that no collector has printed.
NOT_UNDERSTOOD = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def extract(name: str, document: Document, context: dict[str, Value]) -> HostFacts:
    """Return a host's facts; `context` are facts of the audit itself.

    A host whose document cannot be read gets a failure, and does not affect the others.
    """
    try:
        known = merged(tuple(reader.read(document) for reader in READERS))
        clean = merged((Facts(context), _checked(known)))
        return HostFacts(name, merged((clean, capacity.read(clean))))
    except NOT_UNDERSTOOD as wrong:
        why = _printable(str(wrong))[:100]
        return HostFacts(name, failure=f"the answer is not what the collector prints: {why}")


def _checked(facts: Facts) -> Facts:
    """Return the facts without control characters, which a terminal would interpret.

    Raises ValueError for a number out of range.
    """
    origins = {
        fact: replace(origin, path=_printable(origin.path))
        for fact, origin in facts.origins.items()
    }
    values = {fact: _value(fact, value) for fact, value in facts.values.items()}
    return Facts(values, _plain(facts.missing), origins, facts.roles)


def _plain(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: _printable(text) for name, text in texts.items()}


def _value(fact: str, value: Value) -> Value:
    match value:
        case str():
            return _printable(value)
        case tuple():
            return tuple(_value(fact, part) for part in value)
        case bool():
            return value
        case int() | float():
            if not isfinite(value) or abs(value) > MOST:
                raise ValueError(f"{fact} is not a number that a host can have")
            return value
    raise TypeError(f"{fact} is neither a number nor a text")


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
