"""Quotas of other services for the run's projects, if the cloud has these services."""

from collections.abc import Mapping, Sequence

from loadstone.cloud import Access
from loadstone.cloud.access import unusable
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity
from loadstone.keystone.servers import Servers
from loadstone.system.say import Say

# Rally's client -> type in the catalog, path for a project, key of the body. Quotas are not reset:
# they have no effect once the project is deleted.
_SERVICES = {
    "nova": ("compute", "/os-quota-sets/{project}", "quota_set"),
    "cinder": ("block-storage", "/os-quota-sets/{project}", "quota_set"),
    "manila": ("shared-file-system", "/quota-sets/{project}", "quota_set"),
    "neutron": ("network", "/v2.0/quotas/{project}", "quota"),
    "designate": ("dns", "/v2/quotas/{project}", None),
}


def set_quotas(
    access: Access,
    projects: Sequence[str],
    limits: Mapping[str, Mapping[str, int]],
    say: Say,
) -> None:
    """Set each service's limits for each project; services that the cloud lacks are reported."""
    for client, quotas in limits.items():
        kind, path, key = _SERVICES[client]
        # Also a catalog without Nova's version in the URL.
        nova = Servers(Identity(access))
        url = nova.url() if client == "nova" else access.service_url(kind)
        if url is None:
            say(f"quotas of {client} are left out: {access.lacks(kind)}")
            continue
        for project in projects:
            body = dict(quotas) if key is None else {key: dict(quotas)}
            _put(access, client, _join(url, path.format(project=project)), body)


def _put(access: Access, client: str, url: str, body: Mapping[str, object]) -> None:
    from keystoneauth1.exceptions import ClientException

    method = "PATCH" if client == "designate" else "PUT"
    headers = {"X-Auth-All-Projects": "true"} if client == "designate" else {}
    try:
        response = access.session.request(
            url, method, json=body, headers=headers, raise_exc=False, log=False
        )
    except ClientException as error:
        raise unusable(access.cloud, error) from None
    if not response.ok:
        raise EnvironmentUnusable(
            f"{url}: could not set quotas of {client}: HTTP "
            f"{response.status_code} {response.reason}"
        )


def _join(url: str, path: str) -> str:
    # Some catalogs include the version in the URL, some do not.
    base = url.rstrip("/")
    version, _, rest = path.removeprefix("/").partition("/")
    return f"{base}/{rest}" if base.endswith(f"/{version}") else f"{base}{path}"
