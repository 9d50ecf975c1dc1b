"""Chooses the parts of a deployment from its settings. The only module that knows all parts."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import assert_never

from loadstone.lab.environment import ServiceEnvironment
from loadstone.lab.hashing import DEFAULT_ROUNDS
from loadstone.lab.keystone import queens
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.cache import cache
from loadstone.lab.keystone.compute.compose import compute
from loadstone.lab.keystone.database import DATABASE, DATABASES, data_folder
from loadstone.lab.keystone.deployment import password_file
from loadstone.lab.keystone.directory import directory
from loadstone.lab.keystone.federation import RelyingParty, federation
from loadstone.lab.keystone.manage import CommandContext
from loadstone.lab.keystone.options import CheckedOptions
from loadstone.lab.keystone.reference import FlaskReference
from loadstone.lab.keystone.release import Release, SourceTree
from loadstone.lab.keystone.rust import in_rust
from loadstone.lab.keystone.schema import Schema, sync
from loadstone.lab.keystone.service import Keystone
from loadstone.lab.keystone.settings import (
    DatabaseBackend,
    FederationProvider,
    IdentityBackend,
    Implementation,
    LabSettings,
    Option,
    Service,
)
from loadstone.lab.keystone.web import INTERPRETERS, SERVERS
from loadstone.lab.parts.apache import Apache
from loadstone.lab.parts.application import Application
from loadstone.lab.parts.database import USER, Database, DatabaseOptions
from loadstone.lab.parts.haproxy import Haproxy
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.server import Site
from loadstone.lab.ports import HOST, Ports
from loadstone.lab.programs import Program
from loadstone.lab.provider import hydra
from loadstone.lab.provider.keycloak import (
    H2,
    Distribution,
    Keycloak,
    KeycloakDatabase,
    KeycloakSettings,
    Realm,
)
from loadstone.lab.provider.node import NodePackages, NodeProvider
from loadstone.lab.provider.password_hash import PasswordHash
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.system import paths

RELEASES = Path(__file__).parent / "releases"


class _NoPorts(Ports):
    """Gives every purpose the same port and reserves none, for parts that are never started."""

    def allocate(self, purpose: str, requested: int | None = None, host: str = HOST) -> int:  # noqa: ARG002
        """Return a port."""
        return 1


def programs(settings: LabSettings) -> tuple[Program, ...]:
    """Return the programs that a deployment with these settings needs on the machine."""
    # The release needs no program, and to look at one may run git or another Python.
    usual = LabSettings()
    plain = replace(
        settings,
        release=usual.release,
        token=usual.token,
        expired_tokens=usual.expired_tokens,
    )
    nowhere = Blueprint(Path("/"), plain, _NoPorts({}), 1)
    found = (program for part in parts(nowhere) for program in part.programs)
    return tuple(dict.fromkeys(found))


def environment(folder: Path, settings: LabSettings) -> ServiceEnvironment:
    """Return the environment of a release."""
    source = settings.source
    is_old = settings.is_queens
    return ServiceEnvironment(
        root=paths.environments(),
        title=f"keystone-{source.title}",
        contents=(_requirement(source),),
        constraints=_constraints(source),
        deployment=folder,
        interpreter=queens.python() if is_old else INTERPRETERS.get(settings.web),
        pip=queens.PIP if is_old else None,
        patch=source.patch,
        unpatched=f"keystone-{source.version}",
        # Without git's metadata, pbr cannot determine the version (docs.openstack.org/pbr).
        variables=(("PBR_VERSION", source.version),) if source.tree else (),
        require_unchanged=source.require_unchanged if source.patch or source.wheel else None,
    )


def _requirement(source: Release) -> str:
    if source.tree is not None:
        return f"keystone @ {_sources(source).as_uri()}"
    return f"keystone @ {source.wheel.as_uri()}" if source.wheel else f"keystone=={source.version}"


def _sources(source: Release) -> Path:
    return paths.labs() / "sources" / source.title


def _constraints(source: Release) -> Path | None:
    """Return the tested packages of a release, or those of the next release that has them.

    The newest packages do not fit an old Keystone: with bcrypt 5 releases before 25 cannot hash.
    """
    exact = RELEASES / f"{source.version}.txt"
    if source.tree is None and source.wheel is None and exact.exists():
        return exact
    majors = {int(path.name.partition(".")[0]): path for path in RELEASES.glob("*.txt")}
    later = [major for major in majors if major >= source.major]
    return majors[min(later)] if later else None


def parts(blueprint: Blueprint) -> tuple[Part, ...]:
    """Return the parts in the order in which they start."""
    folder, settings = blueprint.folder, blueprint.settings
    if settings.service.is_provider:
        return _provider(blueprint)
    contents = environment(folder, settings)
    place = CommandContext(contents.python, folder, folder / "logs" / "prepare.log")
    if settings.is_queens:
        place = replace(place, program=queens.PREPARE)
    if settings.service is Service.FLASK_REFERENCE:
        return _reference(blueprint, contents)
    template, data = _data(blueprint, place)
    caches, cache_options = cache(
        settings.cache, settings.memcached_servers, folder, blueprint.ports
    )
    directories, directory_options = _directory(blueprint)
    relying: RelyingParty | None = None
    if settings.federation is not FederationProvider.NONE:
        found, relying, federation_options = federation(folder, blueprint.ports)
        directories = (*directories, *found, relying)
        directory_options = (*directory_options, *federation_options)
    beside = compute(blueprint)
    keystone = Keystone(
        place=place,
        settings=settings,
        url=blueprint.url,
        options=(*cache_options, *directory_options),
        secret_options=(("database", "connection", data.connection()),),
        admin_password=blueprint.admin_password,
        services=beside.cloud.accounts() if beside else (),
        federation=relying.users if relying else None,
    )
    if settings.implementation is Implementation.RUST:
        web = _in_rust(blueprint, data.connection())
    else:
        web = _web(blueprint, keystone.application())
    if relying is not None:
        web = tuple(relying.before(part) for part in web)
    servers = (template, data, *caches, *directories, keystone, *web)
    packages = (package for part in servers for package in part.packages)
    if settings.is_queens:
        packages = (queens.older(package) for package in packages)
    contents = replace(contents, contents=(*contents.contents, *dict.fromkeys(packages)))
    options = CheckedOptions(place, settings.source.label, settings.conf)
    source = settings.source
    sources = (SourceTree(source, _sources(source)),) if source.tree else ()
    if beside is None:
        return (*sources, contents, options, *servers)
    # After Keystone, which the compute services need when they start.
    return (*sources, contents, options, beside.environment, *servers, *beside.parts)


def _in_rust(blueprint: Blueprint, database: str) -> tuple[Part, ...]:
    settings = blueprint.settings
    site = Site(blueprint.folder, blueprint.port, host=settings.host)
    rounds = settings.hash_rounds or DEFAULT_ROUNDS
    return in_rust(site, blueprint.ports, blueprint.url, database, rounds)


def _provider(blueprint: Blueprint) -> tuple[Part, ...]:
    match blueprint.settings.service:
        case Service.KEYCLOAK:
            return _keycloak(blueprint)
        case Service.HYDRA:
            return _hydra(blueprint)
        case _:
            site = Site(blueprint.folder, blueprint.port)
            return (
                NodePackages(blueprint.folder),
                NodeProvider(site, blueprint.settings.scrypt_n),
            )


def _keycloak(blueprint: Blueprint) -> tuple[Part, ...]:
    """Return the parts of a Keycloak, whose database is empty at each start."""
    folder, settings = blueprint.folder, blueprint.settings
    chosen = KeycloakSettings(
        java=settings.java,
        heap_mb=settings.heap_mb,
        java_options=settings.java_options,
        pool=settings.db_pool,
        users=settings.realm_users,
        hash=PasswordHash.chosen(settings.hash, settings.hash_iterations),
    )
    data = data_folder(folder, settings)
    servers: tuple[Part, ...] = ()
    database = H2
    if settings.database is not DatabaseBackend.H2:
        servers = (_database(blueprint, data),)
        scheme = "postgresql" if settings.database is DatabaseBackend.POSTGRES else "mariadb"
        url = f"jdbc:{scheme}://{HOST}:{blueprint.ports.allocate(DATABASE)}/{USER}"
        password = blueprint.database_password
        database = KeycloakDatabase(settings.database.value, url, USER, password)
    keycloak = Keycloak(
        Site(folder, blueprint.port),
        blueprint.ports.allocate("management"),
        database,
        chosen,
        blueprint.admin_password,
    )
    distribution = Distribution(folder, data, database.kind, settings.java)
    return (distribution, *servers, keycloak, Realm(keycloak))


def _hydra(blueprint: Blueprint) -> tuple[Part, ...]:
    """Return the parts of a Hydra, whose database is empty at each start."""
    folder, settings, ports = blueprint.folder, blueprint.settings, blueprint.ports
    data = data_folder(folder, settings)
    servers: tuple[Part, ...] = ()
    dsn = hydra.MEMORY
    if settings.database is DatabaseBackend.POSTGRES:
        servers = (_database(blueprint, data),)
        login = f"{USER}:{blueprint.database_password}"
        dsn = f"postgres://{login}@{HOST}:{ports.allocate(DATABASE)}/{USER}?sslmode=disable"
    address = f"http://{HOST}:{blueprint.port}"
    server = hydra.Hydra(
        Site(folder, ports.allocate("hydra")), ports.allocate("admin"), address, dsn
    )
    page = hydra.LoginPage(Site(folder, ports.allocate("login")), server.admin, settings.scrypt_n)
    front = hydra.FrontDoor(Site(folder, blueprint.port), server.site.port, page.site.port)
    build = hydra.HydraProgram(folder, data)
    return (build, *servers, server, hydra.HydraClient(server), page, front)


def _reference(blueprint: Blueprint, contents: ServiceEnvironment) -> tuple[Part, ...]:
    """Return the parts of the reference service: no database, no cache, the same web server."""
    folder = blueprint.folder
    reference = FlaskReference(contents.python, folder, blueprint.url, password_file(folder))
    web = _web(blueprint, reference.application())
    packages = (package for part in web for package in part.packages)
    contents = replace(contents, contents=(*contents.contents, *dict.fromkeys(packages)))
    return (contents, reference, *web)


def _data(blueprint: Blueprint, place: CommandContext) -> tuple[Schema, Database]:
    build = partial(_database, blueprint)
    database = build(data_folder(blueprint.folder, blueprint.settings))
    template = paths.labs() / "templates" / database.data.name
    return Schema(database, template, build, partial(sync, place), place.log), database


def _database(blueprint: Blueprint, data: Path) -> Database:
    settings = blueprint.settings
    make = DATABASES[settings.database]
    options = DatabaseOptions(
        settings.db_connections, settings.db_buffer_mb, settings.db_flush, settings.db_isolation
    )
    return make(data, blueprint.folder, blueprint.ports, blueprint.database_password, options)


def _directory(blueprint: Blueprint) -> tuple[tuple[Part, ...], tuple[Option, ...]]:
    match blueprint.settings.identity:
        case IdentityBackend.SQL:
            return (), ()
        case IdentityBackend.LDAP:
            password, chosen = blueprint.directory_password, blueprint.settings.conf
            return directory(blueprint.folder, blueprint.ports, password, chosen)
        case _:
            assert_never(blueprint.settings.identity)


def _web(blueprint: Blueprint, application: Application) -> tuple[Part, ...]:
    settings, ports = blueprint.settings, blueprint.ports
    site = Site(
        blueprint.folder,
        blueprint.port,
        settings.workers,
        settings.threads,
        backlog=settings.listen,
        host=settings.host,
    )
    build = SERVERS[settings.web]
    certificates = ServerCertificates(blueprint.folder) if settings.tls.is_on else None
    if settings.nodes == 1:
        asks = settings.client_certificates.is_on
        return tuple(
            replace(part, certificates=certificates, asks_clients=asks)
            if isinstance(part, Apache)
            else part
            for part in build(application, site, ports)
        )
    nodes = [
        replace(site, host=HOST, port=ports.allocate(f"node-{number}"), suffix=f"-{number}")
        for number in range(1, settings.nodes + 1)
    ]
    servers = (part for node in nodes for part in build(application, node, ports))
    balanced = tuple(node.port for node in nodes)
    balancer = Haproxy(
        site,
        balanced,
        settings.balance,
        application.health,
        settings.maxconn,
        settings.keep_alive,
        certificates,
    )
    return (*servers, balancer)
