"""The compute service as far as clean-up needs it: servers are found by name, and removed."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity, Unreachable
from loadstone.keystone.things import Kind, Thing
from loadstone.target.access import unusable

if TYPE_CHECKING:
    from requests import Response

_POLL_S = 0.5
_PATIENCE_S = 300.0  # Rally's, for a server to be gone
_NOT_FOUND, _FORBIDDEN = 404, 403
_GONE_STATES = ("DELETED", "SOFT_DELETED")


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of all projects, as the identity that the user gave."""

    identity: Identity

    def find(self, kind: Kind, **query: str) -> tuple[Thing, ...]:
        """List servers whose names begin with `name__startswith`."""
        url = self._url()
        if url is None:
            return ()
        start = query["name__startswith"]
        answer = self._call(
            f"{url}/servers/detail", "GET", {"all_tenants": "1", "name": f"^{re.escape(start)}"}
        )
        if answer.status_code == _NOT_FOUND:
            return ()
        if not answer.ok:
            raise self._refused("list the servers of all projects", answer)
        return tuple(
            Thing(kind, str(server["name"]), str(server["id"]))
            for server in answer.json()["servers"]
            if server.get("status") not in _GONE_STATES
        )

    def remove(self, thing: Thing) -> None:
        """Remove it, and wait until it is gone."""
        url = f"{self._url()}/servers/{thing.id}"
        answer = self._call(url, "DELETE")
        if not answer.ok and answer.status_code != _NOT_FOUND:
            raise self._refused(f"remove server {thing.name}", answer)
        began_s = time.monotonic()
        while not self._is_gone(url):
            if time.monotonic() - began_s > _PATIENCE_S:
                raise EnvironmentUnusable(
                    f"{url}: was deleted, and is still there after {_PATIENCE_S:.0f} s"
                )
            time.sleep(_POLL_S)

    def _is_gone(self, url: str) -> bool:
        answer = self._call(url, "GET")
        if answer.status_code == _NOT_FOUND:
            return True
        return answer.ok and answer.json()["server"].get("status") in _GONE_STATES

    def _url(self) -> str | None:
        """Give the URL of the compute API; None: the catalog has none."""
        from keystoneauth1.exceptions import CatalogException, ClientException

        access = self.identity.access
        try:
            url = access.session.get_endpoint(
                service_type="compute", region_name=access.cloud.region
            )
        except CatalogException:
            return None
        except ClientException as error:
            raise unusable(access.cloud, error) from None
        if not url:
            return None
        # Some catalogs name the version, some do not.
        base = str(url).rstrip("/")
        return base if re.search(r"/v2(\.\d+)?(/|$)", base) else f"{base}/v2.1"

    def _call(self, url: str, method: str, query: Mapping[str, str] | None = None) -> "Response":
        try:
            return self.identity.call(url, method, query=query)
        except Unreachable:
            # Without the compute service, the identity service may still be reached.
            raise EnvironmentUnusable(f"{url}: no connection") from None

    def _refused(self, what: str, answer: "Response") -> EnvironmentUnusable:
        who = self.identity.access.cloud.who
        mend = f"; {who} needs the role admin for it" if answer.status_code == _FORBIDDEN else ""
        return EnvironmentUnusable(
            f"{self._url()}: could not {what}: HTTP {answer.status_code} {answer.reason}{mend}"
        )
