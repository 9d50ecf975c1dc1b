"""Services beside identity, as far as scenarios of openstacksdk use them, on one port."""

import re
import uuid
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from fake_server import handled, serving

PASSWORD = "only for the fake"
SERVICES = {
    "compute": "compute/v2.1",
    "image": "image/v2",
    "block-storage": "volume/v3",
    "network": "network/v2.0",
    "orchestration": "heat/v1",
    "load-balancer": "lb/v2.0",
    "metering": "metering",
    "monitoring": "monitoring",
}
IMAGES = [{"id": "i-1", "name": "cirros-0.5.2"}, {"id": "i-2", "name": "cirros-0.6.0"}]
FLAVORS = [
    {"id": "f-1", "name": "m1.tiny", "ram": 512},
    {"id": "f-2", "name": "m1.tiny2", "ram": 2048},
]
HYPERVISORS = [
    {"id": "h-1", "hypervisor_hostname": "c1", "memory_mb": 262144, "free_ram_mb": 100000},
    {"id": "h-2", "hypervisor_hostname": "c2", "memory_mb": 65536, "free_ram_mb": -512},
]
LISTS = {
    "compute/v2.1/os-hypervisors/detail": ("hypervisors", HYPERVISORS),
    "compute/v2.1/flavors/detail": ("flavors", FLAVORS),
    "image/v2/images": ("images", IMAGES),
    "volume/v3/types": ("volume_types", []),
    "heat/v1/stacks": ("stacks", []),
    "lb/v2.0/lbaas/loadbalancers": ("loadbalancers", []),
    "lb/v2.0/v2.0/lbaas/loadbalancers": ("loadbalancers", []),
    "metering/v2/meters": ("meters", []),
    "monitoring/metrics": ("metrics", []),
}

KEPT_BY_NEUTRON = tuple(f"network/v2.0/{one}" for one in ("networks", "subnets", "security-groups"))


class FakeCloud:
    """State: servers that are ACTIVE at the second look, and a count of all calls."""

    def __init__(self):
        self.servers = {}
        self.networks = {}
        self.groups = {}  # security groups
        self.hold_groups = False  # they are in use
        self.calls = Counter()
        self.requests = []
        self.refuse_boot = False
        self.locks_first = False  # the first server cannot be deleted
        self.hides_servers = False  # from whoever does not list those of all projects
        self.token_is_good = False  # whatever it is
        self.down = set()  # services that answer 503
        self.is_admin = True  # whoever lists the servers of all projects
        self.most_listed = 1000  # rows of a page

    def handler(self):
        return handled(self.serve)

    def serve(self, request):
        url = urlsplit(request.path)
        body = request.json()
        path = url.path.strip("/")
        self.calls[request.command, path.replace("servers/s-", "servers/ID-")[:60]] += 1
        self.requests.append((request.command, request.path, body))
        request.answer(*self.answer(request, path, body))

    def answer(self, request, path, body):
        base = f"http://{request.headers['Host']}"
        if (request.command, path) == ("POST", "identity/v3/auth/tokens"):
            return self.token(base, body)
        is_good = self.token_is_good or request.headers.get("X-Auth-Token", "").startswith("good")
        if not is_good and not path.endswith(tuple("0123")):
            return 401, {"error": {"message": "who are you?"}}
        if path.partition("/")[0] in self.down:
            return 503, {"error": {"message": f"down, {PASSWORD}"}}
        if path in LISTS:
            return 200, self.listed(request, *LISTS[path])
        if path.startswith(("compute/v2.1/servers", *KEPT_BY_NEUTRON)):
            return self.kept(request, path, body)
        return self.version(base, path)

    def listed(self, request, word, things):
        """Return a page that begins behind the marker, with a link if there are more."""
        marker = dict(parse_qsl(urlsplit(request.path).query)).get("marker")
        ids = [one["id"] for one in things]
        begin = ids.index(marker) + 1 if marker else 0
        page = things[begin : begin + self.most_listed]
        has_more = begin + len(page) < len(things)
        return {word: page} | ({f"{word}_links": [{"rel": "next"}]} if has_more else {})

    def kept(self, request, path, body):
        if path.startswith("network/v2.0/security-groups"):
            return self.neutron_group(request.command, path.rpartition("/")[2])
        if path.startswith("network/v2.0/subnets"):
            return 201, {"subnet": {"id": "sub", **body["subnet"]}}
        if path.startswith("network"):
            project = request.headers.get("X-Auth-Token", "").removeprefix("good ")
            return self.neutron(request.command, path.rpartition("/")[2], body, project)
        query = dict(parse_qsl(urlsplit(request.path).query))
        return self.nova(request.command, path.split("/")[3:], body, query)

    def version(self, base, path):
        for root in SERVICES.values():
            if path in (root, root.partition("/")[0]):
                number = root.partition("/v")[2] or "2"
                known = {
                    "id": f"v{number}",
                    "status": "CURRENT",
                    "version": "2.96",
                    "min_version": "2.1",
                    "links": [{"rel": "self", "href": f"{base}/{root}"}],
                }
                return 200, {"version": known} if path == root else {"versions": [known]}
        if path == "identity/v3":
            links = [{"rel": "self", "href": f"{base}/{path}"}]
            return 200, {"version": {"id": "v3.14", "status": "stable", "links": links}}
        return 404, {"error": {"message": f"no {path}"}}

    def neutron(self, method, identity, body, project):
        match method:
            case "POST":
                made = {"id": f"n-{uuid.uuid4().hex}", **body["network"]}
                self.networks[made["id"]] = made
                self.ensure_group(made.get("project_id"))
                return 201, {"network": made}
            case "DELETE":
                del self.networks[identity]
                return 204, None
        seen = [one for one in self.networks.values() if one.get("only_of", project) == project]
        return 200, {"networks": seen}

    def ensure_group(self, project):
        """Make the group `default` of a project, as Neutron does before its first network."""
        if project not in [one["project_id"] for one in self.groups.values()]:
            group = {"id": f"g-{uuid.uuid4().hex}", "name": "default", "project_id": project}
            self.groups[group["id"]] = group

    def neutron_group(self, method, identity):
        if method == "DELETE" and self.hold_groups:
            return 409, {"NeutronError": {"message": "in use"}}
        if method == "DELETE":
            del self.groups[identity]
            return 204, None
        return 200, {"security_groups": list(self.groups.values())}

    def nova(self, method, rest, body, query):
        if rest and rest != ["detail"]:
            return self.nova_server(method, *rest)
        match method:
            case "POST" if self.refuse_boot:
                return 403, {"forbidden": {"code": 403, "message": "Quota exceeded for instances"}}
            case "POST":
                made = {"id": f"s-{uuid.uuid4().hex}", "status": "BUILD", **body["server"]}
                self.servers[made["id"]] = made
                return 202, {"server": {"id": made["id"]}}
        if "all_tenants" in query and not self.is_admin:
            return 403, {"forbidden": {"code": 403, "message": "Policy does not allow it"}}
        if "all_tenants" not in query and self.hides_servers:
            return 200, {"servers": []}
        name = re.compile(query.get("name", ""))
        return 200, {"servers": [one for one in self.servers.values() if name.search(one["name"])]}

    def nova_server(self, method, identity, *_):
        if identity not in self.servers:
            return 404, {"itemNotFound": {"code": 404, "message": "no such server"}}
        if method == "GET":
            shown = dict(self.servers[identity])
            self.servers[identity]["status"] = "ACTIVE"
            return 200, {"server": shown}
        # DELETE, or the action that forces it.
        if self.locks_first and identity == next(iter(self.servers)):
            return 409, {"conflictingRequest": {"code": 409, "message": "it is locked"}}
        del self.servers[identity]
        return (204 if method == "DELETE" else 202), None

    def token(self, base, body):
        user = body["auth"]["identity"]["password"]["user"]
        if user["password"] != PASSWORD:
            return 401, {"error": {"code": 401, "message": "The request requires authentication."}}
        now = datetime.now(UTC)
        token = {
            "issued_at": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
            "expires_at": f"{now + timedelta(hours=1):%Y-%m-%dT%H:%M:%S.%fZ}",
            "methods": ["password"],
            "user": {"id": "u", "name": user["name"], "domain": {"id": "d", "name": "D"}},
            "project": {"id": "p", "name": "P", "domain": {"id": "d", "name": "D"}},
            "catalog": self.catalog(base),
            "roles": [],
        }
        project = body["auth"].get("scope", {}).get("project", {}).get("name", "")
        return 201, {"token": token}, (("X-Subject-Token", f"good {project}"),)

    def catalog(self, base):
        return [
            {
                "type": service,
                "name": service,
                "id": service,
                "endpoints": [
                    _endpoint(base, path),
                    _endpoint(f"{base}/internal", path, "internal"),
                ],
            }
            for service, path in SERVICES.items()
        ]


def _endpoint(base, path, interface="public"):
    place = {"region_id": "R", "region": "R", "interface": interface}
    return {"id": f"{path}-{interface}", "url": f"{base}/{path}", **place}


@contextmanager
def fake_cloud():
    """Serve a fake cloud; gives it and the settings of a call plan."""
    fake = FakeCloud()
    with serving(fake.handler()) as url:
        yield fake, {"auth_url": f"{url}/identity/v3", "prefix": "loadstone-r1-i", "region": "R"}
