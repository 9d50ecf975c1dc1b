"""The network API, as far as the context `network` and clean-up need it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from loadstone.cloud.access import not_json
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity, is_missing
from loadstone.keystone.resources import Resource, ResourceKind

_OF_EXTENSIONS = ("security_groups",)  # that a Neutron may lack


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks of all projects, seen by the identity that the user chose."""

    identity: Identity

    def create(self, project_id: str, name: str, attributes: Mapping[str, Any]) -> str:
        """Create a network in a project; return its id."""
        # Last: clean-up finds it by this name.
        body = {"network": {**attributes, "name": name, "project_id": project_id}}
        return self._create(f"create network {name}", "networks", body, "network")

    def add_subnet(self, network_id: str, project_id: str, cidr: str, servers: list[str]) -> None:
        """Add a subnet for IPv4; it is removed with its network."""
        subnet = {
            "network_id": network_id,
            "project_id": project_id,
            "cidr": cidr,
            "ip_version": 4,
            "dns_nameservers": servers,
        }
        self._create(f"create subnet {cidr}", "subnets", {"subnet": subnet}, "subnet")

    def find(self, kind: ResourceKind, **query: str) -> tuple[Resource, ...]:
        """List networks whose names begin with `name__startswith`."""
        start = query["name__startswith"]
        what = "list the networks of all projects"
        listed = self._listed(what, "networks", ("id", "name"))
        every = (Resource(kind, str(one["name"]), str(one["id"])) for one in listed)
        return tuple(one for one in every if one.name.startswith(start))

    def default_groups(self) -> dict[str, tuple[str, ...]]:
        """Return the ids of the security groups `default` by the id of their project."""
        # All of them: for a project in the query, Neutron would make a missing group.
        what = "list the security groups of all projects"
        found: dict[str, tuple[str, ...]] = {}
        for one in self._listed(what, "security_groups", ("id", "project_id", "name")):
            if one["name"] != "default":
                continue
            project = str(one["project_id"])
            found[project] = (*found.get(project, ()), str(one["id"]))
        return found

    def _listed(self, what: str, key: str, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Yield all of a kind; Neutron may give them in pages (`pagination_max_limit`)."""
        url = self._url()
        if url is None:
            raise self.identity.lacks_service("network")
        query = "&".join(f"fields={name}" for name in names)
        path, marker = key.replace("_", "-"), ""
        while True:
            response = self.identity.call_service(f"{url}/{path}?{query}{marker}", "GET")
            if key in _OF_EXTENSIONS and is_missing(response) and self._is_neutron(url):
                return  # it has none
            if not response.ok:
                raise self.identity.refused_by_service(url, what, response)
            try:
                page = response.json()
                things = [{name: one[name] for name in names} for one in page[key]]
                links = [str(one["rel"]) for one in page.get(f"{key}_links", ())]
            except (AttributeError, KeyError, TypeError, ValueError):
                raise not_json(self.identity.access.cloud, what, response) from None
            yield from things
            if "next" not in links or not things:
                return
            marker = f"&marker={quote(str(things[-1]['id']), safe='')}"

    def _is_neutron(self, url: str) -> bool:
        """Return whether networks are served there, not only by a gateway that answers 404."""
        return self.identity.call_service(f"{url}/networks?fields=id&limit=1", "GET").ok

    def remove(self, thing: Resource) -> None:
        """Remove a network with its subnets, or a security group."""
        url = self._url()
        path = f"{thing.kind.replace(' ', '-')}s/{quote(str(thing.id), safe='')}"
        response = self.identity.call_service(f"{url}/{path}", "DELETE")
        if not response.ok and not is_missing(response):
            what = f"remove {thing.kind} {thing.name}"
            raise self.identity.refused_by_service(url, what, response)

    def require_service(self) -> str:
        """Return the URL of the network API; EnvironmentUnusable if the catalog has none.

        InvalidInput if it is on another machine, which is not permitted.
        """
        url = self._url()
        if url is None:
            raise EnvironmentUnusable(
                "context network needs a service of type network, and "
                f"{self.identity.access.lacks('network')}"
            )
        return url

    def _create(self, what: str, path: str, body: Mapping[str, Any], key: str) -> str:
        url = self.require_service()
        response = self.identity.call_service(f"{url}/{path}", "POST", body)
        if not response.ok:
            raise self.identity.refused_by_service(url, what, response)
        try:
            return str(response.json()[key]["id"])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise not_json(self.identity.access.cloud, what, response) from None

    def _url(self) -> str | None:
        """Return the URL of the network API, or None if the catalog has none."""
        url = self.identity.access.service_url("network")
        if not url:
            return None
        # Some catalogs include the version in the URL, some do not.
        base = url.rstrip("/")
        return base if base.endswith("/v2.0") else f"{base}/v2.0"
