"""Runs in one interpreter what takes five calls of keystone-manage (3.5 s of CPU each).

Reads its input as JSON from standard input, because it contains the administrator's password:
{"options": [...], "sync": bool, "jws": bool, "directory": null or the name of a
domain, "bootstrap": null or {"password", "url", "region"}, "password_hash": file to write,
"federation": null or {"identity_provider", "protocol", "issuer", "project"},
"by_certificate": "" or the name of the user whom clients' certificates name,
"services": a list of {"name", "kind", "url", "password"}, "revocation_events": number of events to
write, "expired_tokens": 0, "population": {"users", "projects", "groups", "roles_per_user",
"unique_passwords"}}.
"""
# mypy: ignore-errors
# Keystone is installed in the lab's environment only.

import contextlib
import json
import sys
import uuid
from pathlib import Path

from both import CONF, configure, write_revocation_events
from keystone import exception
from keystone.cmd import bootstrap, cli
from keystone.common import fernet_utils, sql
from keystone.common.sql import upgrades
from keystone.credential.providers import fernet as credential_fernet
from keystone.identity.backends import sql_model
from population import write_population


def make_keys() -> None:
    """Run fernet_setup and credential_setup; existing keys are kept."""
    for section in ("fernet_tokens", "fernet_receipts"):
        cli.FernetSetup.initialize_fernet_repository(None, None, section)
    repository = fernet_utils.FernetUtils(
        CONF.credential.key_repository, credential_fernet.MAX_ACTIVE_KEYS, "credential"
    )
    repository.create_key_directory(None, None)
    repository.initialize_key_repository(None, None)


def make_jws_keys() -> None:
    """Run create_jws_keypair for both repositories; existing keys are kept."""
    # Releases before JWS have no such module.
    from keystone.common import jwt_utils

    private = Path(CONF.jwt_tokens.jws_private_key_repository)
    public = Path(CONF.jwt_tokens.jws_public_key_repository)
    for folder in (private, public):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (private / "private.pem").exists():
        jwt_utils.create_jws_keypair(str(private / "private.pem"), str(public / "public.pem"))


def make_domain(name: str) -> None:
    """Create the domain before anything reads users: its own configuration is read then."""
    domain = {"id": name, "name": name, "enabled": True, "description": "users in LDAP"}
    with contextlib.suppress(exception.Conflict):
        bootstrap.PROVIDERS.resource_api.create_domain(name, domain)


def grant_directory(name: str, role_id: str) -> None:
    """Create a project in the domain and give all of its users a role in it."""
    providers = bootstrap.PROVIDERS
    project = {"id": f"{name}-project", "name": name, "domain_id": name, "enabled": True}
    with contextlib.suppress(exception.Conflict):
        providers.resource_api.create_project(project["id"], project)
    for user in providers.identity_api.list_users(domain_scope=name):
        with contextlib.suppress(exception.Conflict):
            providers.assignment_api.add_role_to_user_and_project(
                user_id=user["id"], project_id=project["id"], role_id=role_id
            )


def bootstrap_admin(work: bootstrap.Bootstrapper, password: str, url: str, region: str) -> None:
    """Run bootstrap; an existing administrator gets the password as if it were the first.

    A password that is changed through the API leaves a revocation event, which every later
    validation would have to check: a deployment that was started ten times would be slower than a
    new one.
    """
    identity = bootstrap.PROVIDERS.identity_api
    try:
        admin = identity.get_user_by_name("admin", CONF.identity.default_domain_id)
    except exception.NotFound:
        pass
    else:
        identity.driver.update_user(admin["id"], {"password": password})
    work.admin_password = password
    work.admin_username = work.project_name = work.admin_role_name = "admin"
    work.service_name = "keystone"
    work.admin_url = work.internal_url = work.public_url = url
    work.region_id = region
    work.immutable_roles = True
    work.bootstrap()


def write_password_hash(path: str) -> None:
    """Write how the administrator's password is stored, without salt and digest: ["2b", "12"].

    In modular crypt format a hash is $ALGORITHM$COST$...
    """
    admin = bootstrap.PROVIDERS.identity_api.get_user_by_name(
        "admin", CONF.identity.default_domain_id
    )
    with sql.session_for_read() as session:
        user = session.query(sql_model.User).filter_by(id=admin["id"]).one()
        stored = user.password_ref.password_hash
    with open(path, "w") as file:
        json.dump(stored.split("$")[1:3], file)


def make_services(work: bootstrap.Bootstrapper, accounts: list[dict[str, str]]) -> None:
    """Make each service's user and catalog entry; remove those of services that are not wanted.

    A user that exists gets the password past the API, as the administrator does.
    """
    catalog = bootstrap.PROVIDERS.catalog_api
    known = {one["name"]: one for one in catalog.list_services() if one.get("lab")}
    for name in known.keys() - {account["name"] for account in accounts}:
        catalog.delete_service(known[name]["id"])
    for account in accounts:
        grant_service(work, account)
        service = known.get(account["name"])
        if service is None:
            service = {"name": account["name"], "type": account["kind"], "lab": True}
            service |= {"id": uuid.uuid4().hex, "enabled": True}
            catalog.create_service(service["id"], service)
        publish(service["id"], account["url"], work.region_id)


def grant_service(work: bootstrap.Bootstrapper, account: dict[str, str]) -> None:
    """Make a service's user, with the roles that services have in their project."""
    providers, domain = bootstrap.PROVIDERS, CONF.identity.default_domain_id
    try:
        project = providers.resource_api.get_project_by_name("service", domain)
    except exception.NotFound:
        project = {"id": uuid.uuid4().hex, "name": "service", "domain_id": domain, "enabled": True}
        providers.resource_api.create_project(project["id"], project)
    try:
        user = providers.identity_api.get_user_by_name(account["name"], domain)
        providers.identity_api.driver.update_user(user["id"], {"password": account["password"]})
    except exception.NotFound:
        user = {"name": account["name"], "domain_id": domain, "enabled": True}
        user = providers.identity_api.create_user(user | {"password": account["password"]})
    roles = {role["name"]: role["id"] for role in providers.role_api.list_roles()}
    if "service" not in roles:  # bootstrap makes it since release 24
        roles["service"] = uuid.uuid4().hex
        providers.role_api.create_role(
            roles["service"], {"id": roles["service"], "name": "service"}
        )
    for name in (work.admin_role_name, "service"):
        with contextlib.suppress(exception.Conflict):
            providers.assignment_api.add_role_to_user_and_project(
                user_id=user["id"], project_id=project["id"], role_id=roles[name]
            )


def publish(service_id: str, url: str, region: str) -> None:
    """Let the service's endpoints be this URL."""
    catalog = bootstrap.PROVIDERS.catalog_api
    known = {
        one["interface"]: one for one in catalog.list_endpoints() if one["service_id"] == service_id
    }
    for interface in ("public", "internal", "admin"):
        if interface not in known:
            endpoint = {"id": uuid.uuid4().hex, "interface": interface, "url": url}
            endpoint |= {"service_id": service_id, "region_id": region, "enabled": True}
            catalog.create_endpoint(endpoint["id"], endpoint)
        elif known[interface]["url"] != url:
            catalog.update_endpoint(known[interface]["id"], {"url": url})


def admit_federated(role_id: str, identity_provider: str, protocol: str, issuer: str, project: str):
    """Let in whom an identity provider knows, with a role in a project by way of a group."""
    providers, domain = bootstrap.PROVIDERS, CONF.identity.default_domain_id
    group_id = found_or_made(
        lambda: providers.identity_api.get_group_by_name(project, domain),
        lambda: providers.identity_api.create_group({"name": project, "domain_id": domain}),
    )
    wanted = {"id": uuid.uuid4().hex, "name": project, "domain_id": domain, "enabled": True}
    project_id = found_or_made(
        lambda: providers.resource_api.get_project_by_name(project, domain),
        lambda: providers.resource_api.create_project(wanted["id"], wanted),
    )
    with contextlib.suppress(exception.Conflict):
        providers.assignment_api.create_grant(role_id, group_id=group_id, project_id=project_id)
    federation = providers.federation_api
    remote = [{"type": "HTTP_OIDC_SUB"}, {"type": "HTTP_OIDC_ISS", "any_one_of": [issuer]}]
    local = [{"user": {"name": "{0}"}}, {"group": {"id": group_id}}]
    mapping = {"rules": [{"local": local, "remote": remote}]}
    if any(idp["id"] == identity_provider for idp in federation.list_idps()):
        # The provider may be on another port than before.
        federation.update_idp(identity_provider, {"remote_ids": [issuer]})
        federation.update_mapping(identity_provider, mapping)
        return
    idp = {"remote_ids": [issuer], "enabled": True, "domain_id": domain}
    federation.create_idp(identity_provider, idp)
    federation.create_mapping(identity_provider, mapping)
    federation.create_protocol(identity_provider, protocol, {"mapping_id": identity_provider})


def admit_by_certificate(name: str) -> None:
    """Let OAuth2 clients log in as this user, with a certificate in place of a secret.

    Keystone's guide: "OAuth2.0 Mutual-TLS". The token is for the user's default project.
    """
    providers, domain = bootstrap.PROVIDERS, CONF.identity.default_domain_id
    user = providers.identity_api.get_user_by_name(name, domain)
    project = providers.resource_api.get_project_by_name("admin", domain)
    if user.get("default_project_id") != project["id"]:
        providers.identity_api.update_user(user["id"], {"default_project_id": project["id"]})
    remote = [{"type": "SSL_CLIENT_SUBJECT_DN_CN"}]
    local = [{"user": {"name": "{0}", "domain": {"id": domain}}}]
    mapping_id = CONF.oauth2.oauth2_cert_dn_mapping_id
    with contextlib.suppress(exception.Conflict):
        providers.federation_api.create_mapping(
            mapping_id, {"rules": [{"local": local, "remote": remote}]}
        )


def found_or_made(find, make) -> str:
    """Return the id of what is found, or else made."""
    try:
        return find()["id"]
    except exception.NotFound:
        return make()["id"]


def main() -> None:
    """Prepare the deployment as standard input says."""
    order = json.load(sys.stdin)
    configure(order["options"])
    if order["sync"]:
        upgrades.offline_sync_database_to_version(None)
    if order["bootstrap"]:
        make_keys()
        if order["jws"]:
            make_jws_keys()
        work = bootstrap.Bootstrapper()
        if order["directory"]:
            make_domain(order["directory"])
        bootstrap_admin(work, **order["bootstrap"])
        write_password_hash(order["password_hash"])
        if order["directory"]:
            grant_directory(order["directory"], work.member_role_id)
        if order["federation"]:
            admit_federated(work.member_role_id, **order["federation"])
        if order["by_certificate"]:
            admit_by_certificate(order["by_certificate"])
        make_services(work, order["services"])
        write_revocation_events(order["revocation_events"])
        write_population(work.member_role_id, **order["population"])


if __name__ == "__main__":
    main()
