"""The compute API, as far as clean-up needs it: finds servers by name and removes them."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from loadstone.cloud.access import not_json, unusable
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity, Unreachable
from loadstone.keystone.resources import Resource, ResourceKind

if TYPE_CHECKING:
    from requests import Response

_POLL_S = 0.5
_PATIENCE_S = 300.0  # Rally's limit for the deletion of a server
_NOT_FOUND, _FORBIDDEN = 404, 403
_GONE_STATES = ("DELETED", "SOFT_DELETED")


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of all projects, seen by the identity that the user chose."""

    identity: Identity

    def find(self, kind: ResourceKind, **query: str) -> tuple[Resource, ...]:
        """List servers whose names begin with `name__startswith`."""
        url = self._url()
        if url is None:
            return ()
        start = query["name__startswith"]
        response = self._call(
            f"{url}/servers/detail", "GET", {"all_tenants": "1", "name": f"^{re.escape(start)}"}
        )
        if response.status_code == _NOT_FOUND:
            return ()
        if not response.ok:
            raise self._refused("list the servers of all projects", response)
        try:
            servers = response.json()["servers"]
            return tuple(
                Resource(kind, str(server["name"]), str(server["id"]))
                for server in servers
                if server.get("status") not in _GONE_STATES
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            cloud = self.identity.access.cloud
            raise not_json(cloud, "list the servers of all projects", response) from None

    def remove(self, thing: Resource) -> None:
        """Remove a server, and wait until it is gone."""
        url = f"{self._url()}/servers/{quote(str(thing.id), safe='')}"
        response = self._call(url, "DELETE")
        if not response.ok and response.status_code != _NOT_FOUND:
            raise self._refused(f"remove server {thing.name}", response)
        began_s = time.monotonic()
        while not self._is_gone(url):
            if time.monotonic() - began_s > _PATIENCE_S:
                raise EnvironmentUnusable(
                    f"{url}: was deleted, and is still there after {_PATIENCE_S:.0f} s"
                )
            time.sleep(_POLL_S)

    def _is_gone(self, url: str) -> bool:
        response = self._call(url, "GET")
        if response.status_code == _NOT_FOUND:
            return True
        try:
            return response.ok and response.json()["server"].get("status") in _GONE_STATES
        except (AttributeError, KeyError, TypeError, ValueError):
            raise not_json(self.identity.access.cloud, "look up a server", response) from None

    def _url(self) -> str | None:
        """Return the URL of the compute API, or None if the catalog has none."""
        from keystoneauth1.exceptions import CatalogException, ClientException

        access = self.identity.access
        try:
            url = access.session.get_endpoint(
                service_type="compute",
                interface=access.cloud.interface,
                region_name=access.cloud.region,
            )
        except CatalogException:
            return None
        except ClientException as error:
            raise unusable(access.cloud, error) from None
        if not url:
            return None
        # Some catalogs include the version in the URL, some do not.
        base = str(url).rstrip("/")
        return base if re.search(r"/v2(\.\d+)?(/|$)", base) else f"{base}/v2.1"

    def _call(self, url: str, method: str, query: Mapping[str, str] | None = None) -> "Response":
        try:
            return self.identity.call(url, method, query=query)
        except Unreachable:
            # Without the compute service, the identity service may still be reachable.
            raise EnvironmentUnusable(f"{url}: no connection") from None

    def _refused(self, what: str, response: "Response") -> EnvironmentUnusable:
        why = self.identity.access.cloud.lacks_role("for it")
        hint = f"; {why}" if response.status_code == _FORBIDDEN else ""
        return EnvironmentUnusable(
            f"{self._url()}: could not {what}: HTTP {response.status_code} {response.reason}{hint}"
        )
