"""Turns a collected document into the facts that rules speak of."""

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, HostFacts, Value, merged
from loadstone.audit.readers import (
    balancer,
    cache,
    capacity,
    database,
    host,
    keystone,
    others,
    web,
)

READERS = (host, web, keystone, database, cache, balancer, others)


def extract(name: str, document: Document, context: dict[str, Value]) -> HostFacts:
    """Return a host's facts; `context` is what is known of the audit itself."""
    known = merged((Facts(context), *(reader.read(document) for reader in READERS)))
    return HostFacts(name, merged((known, capacity.read(known))))
