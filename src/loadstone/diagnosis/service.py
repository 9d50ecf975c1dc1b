"""The measured service, as sentences and ids of findings name it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredService:
    """Words for one service; a deployment or a target says which one it is."""

    name: str  # within a sentence: "Keystone", "the provider"
    prefix: str = "service"  # of the ids of findings about it, and its role in data
    pool_limit: str = "the limit of its connection pool"

    @property
    def title(self) -> str:
        """Its name at the beginning of a sentence."""
        return self.name[:1].upper() + self.name[1:]

    def part(self, what: str) -> str:
        """Return the name of one of its parts within a sentence: "Keystone's CPU"."""
        return f"{self.name}'s {what}"

    def finding(self, what: str) -> str:
        """Return the id of a finding about it: "keystone-cpu"."""
        return f"{self.prefix}-{what}"


KEYSTONE = MeasuredService("Keystone", "keystone", "[database] max_pool_size of Keystone")
KEYCLOAK = MeasuredService("Keycloak", pool_limit="db-pool-max-size of Keycloak")
PROVIDER = MeasuredService("the provider")  # known by its protocol only
WEB_SERVICE = MeasuredService("the service")  # known by a URL only

# Regions of Keystone's cache, each with connections of its own (keystone/server/backends.py).
CACHE_REGIONS = 8
