"""Boots servers in the projects of a run before its load."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from loadstone.cloud.access import not_json
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.contexts.model import ExistingServers
from loadstone.keystone.contexts.reference import choose
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import ANY, ResourceKind, Token, User, counted, resource_name
from loadstone.keystone.servers import Servers
from loadstone.system.concurrently import each
from loadstone.system.say import Say

_WORKERS = 4
_POLL_S = 0.5
_PATIENCE_S = 300.0  # Rally's limit for a server to be active


def boot_servers(
    identity: Identity,
    context: ExistingServers,
    users: Sequence[User],
    networks: Mapping[str, Sequence[str]],
    journal: Journal,
    say: Say,
) -> None:
    """Boot servers in each project as its first user, and wait until they are active."""
    owners = {user.project_id: user for user in reversed(users)}
    say(f"booting {counted(context.per_tenant * len(owners), ResourceKind.SERVER)}")
    compute = _Compute(identity)
    jobs = []
    for project, owner in owners.items():
        token = identity.log_in(owner)
        body: dict[str, Any] = {
            "imageRef": compute.find_id("image", "/v2/images", context.image, token),
            "flavorRef": compute.find_id("compute", "/flavors", context.flavor, token),
        }
        picked = networks.get(project, ())[:1] if context.picks_network else ()
        if ids := context.network_ids or picked:
            body["networks"] = [{"uuid": one} for one in ids]
        jobs += [(token, body)] * context.per_tenant
    compute.url("compute")  # without the service, nothing is made that clean-up would look for
    run_id, kind = journal.run_id, ResourceKind.SERVER
    journal.create(kind, resource_name(run_id, kind, ANY))
    numbered = [(resource_name(run_id, kind, n), *job) for n, job in enumerate(jobs)]
    each(lambda job: compute.boot(*job), numbered, _WORKERS, say)


@dataclass(frozen=True, slots=True)
class _Compute:
    identity: Identity

    def boot(self, name: str, token: Token, body: Mapping[str, Any]) -> None:
        """Boot a server and wait until it is active."""
        server = {"server": {"name": name, **body}}
        response = self._json("compute", "/servers", token, "POST", server)
        path, began_s = f"/servers/{response['server']['id']}", time.monotonic()
        while (status := self._json("compute", path, token)["server"]["status"]) != "ACTIVE":
            late = time.monotonic() - began_s > _PATIENCE_S
            if late or status == "ERROR":
                why = f"not active after {_PATIENCE_S:.0f} s" if late else "in state ERROR"
                raise EnvironmentUnusable(f"servers: server {name} is {why}")
            time.sleep(_POLL_S)

    def find_id(self, service: str, path: str, reference: Mapping[str, Any], token: Token) -> str:
        """Return the id of the image or flavor that a reference means."""
        if reference.get("id"):
            return str(reference["id"])
        kind = path.rpartition("/")[2].removesuffix("s")
        names = {
            str(one["id"]): one.get("name") or "" for one in self._listed(service, path, token)
        }
        try:
            return choose(kind, reference, names)
        except LookupError as wrong:
            raise EnvironmentUnusable(f"servers: {wrong}") from None

    def _listed(self, service: str, path: str, token: Token) -> Iterator[dict[str, Any]]:
        """Yield all images or flavors, which come in pages."""
        key, marker = path.rpartition("/")[2], ""
        while True:
            page = self._json(service, f"{path}{marker}", token)
            yield from page[key]
            if not page[key] or not ("next" in page or f"{key}_links" in page):
                return
            marker = f"?marker={quote(str(page[key][-1]['id']), safe='')}"

    def _json(
        self,
        service: str,
        path: str,
        token: Token,
        method: str = "GET",
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        url = f"{self.url(service)}{path}"
        response = self.identity.call(url, method, body, whom=token)
        if not response.ok:
            raise EnvironmentUnusable(
                f"{url}: could not prepare servers: HTTP {response.status_code} {response.reason}"
            )
        try:
            return response.json()
        except ValueError:
            raise not_json(self.identity.access.cloud, "prepare servers", response) from None

    def url(self, service: str) -> str:
        """Return the URL of a service's API; EnvironmentUnusable if the catalog has none."""
        access = self.identity.access
        is_compute = service == "compute"
        url = Servers(self.identity).url() if is_compute else access.service_url(service)
        if url is None:
            raise EnvironmentUnusable(
                f"context servers needs a service of type {service}, and {access.lacks(service)}"
            )
        # Some catalogs include the version in the URL, some do not.
        return url if is_compute else url.rstrip("/").removesuffix("/v2")
