"""The compute API, as far as clean-up needs it: finds servers by name and removes them."""

import re
import time
from dataclasses import dataclass
from urllib.parse import quote

from loadstone.cloud.access import not_json
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity, is_missing
from loadstone.keystone.resources import Resource, ResourceKind

_POLL_S = 0.5
_PATIENCE_S = 300.0  # Rally's limit for the deletion of a server
_GONE_STATES = ("DELETED", "SOFT_DELETED")


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of all projects, seen by the identity that the user chose."""

    identity: Identity

    def find(self, kind: ResourceKind, **query: str) -> tuple[Resource, ...]:
        """List servers whose names begin with `name__startswith`."""
        url = self.url()
        if url is None:
            raise self.identity.lacks_service("compute")
        named = f"^{re.escape(query['name__startswith'])}"
        response = self.identity.call_service(
            f"{url}/servers/detail", "GET", query={"all_tenants": "1", "name": named}
        )
        what = "list the servers of all projects"
        if not response.ok:
            raise self.identity.refused_by_service(url, what, response)
        try:
            servers = response.json()["servers"]
            return tuple(
                Resource(kind, str(server["name"]), str(server["id"]))
                for server in servers
                if server.get("status") not in _GONE_STATES
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise not_json(self.identity.access.cloud, what, response) from None

    def remove(self, thing: Resource) -> None:
        """Remove a server, and wait until it is gone."""
        api = self.url()
        url = f"{api}/servers/{quote(str(thing.id), safe='')}"
        response = self.identity.call_service(url, "DELETE")
        if not response.ok and not is_missing(response):
            what = f"remove server {thing.name}"
            raise self.identity.refused_by_service(api, what, response)
        began_s = time.monotonic()
        while not self._is_gone(url):
            if time.monotonic() - began_s > _PATIENCE_S:
                raise EnvironmentUnusable(
                    f"{url}: was deleted, and is still there after {_PATIENCE_S:.0f} s"
                )
            time.sleep(_POLL_S)

    def _is_gone(self, url: str) -> bool:
        response = self.identity.call_service(url, "GET")
        if is_missing(response):
            return True
        try:
            return response.ok and response.json()["server"].get("status") in _GONE_STATES
        except (AttributeError, KeyError, TypeError, ValueError):
            raise not_json(self.identity.access.cloud, "look up a server", response) from None

    def url(self) -> str | None:
        """Return the URL of the compute API, which is that of all projects; None without one."""
        url = self.identity.access.service_url("compute")
        if not url:
            return None
        # Some catalogs include the version in the URL, and the project that the token is for.
        versioned = re.match(r".*?/v2(\.\d+)?(?=/|$)", url)
        return versioned[0] if versioned else f"{url.rstrip('/')}/v2.1"
