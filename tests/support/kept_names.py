"""The names of all that a Keystone keeps."""

from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import ResourceKind

# Keystone answers other paths with a page, as a proxy does.
OF_OTHERS = {ResourceKind.SECURITY_GROUP, ResourceKind.NETWORK, ResourceKind.SERVER}


def kept_names(identity: Identity) -> dict[ResourceKind, list[str]]:
    """Return them by kind, sorted."""
    return {
        kind: sorted(thing.name for thing in identity.find(kind))
        for kind in ResourceKind
        if kind not in OF_OTHERS
    }
