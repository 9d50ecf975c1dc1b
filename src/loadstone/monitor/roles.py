"""Roles of processes in a deployment."""

from enum import StrEnum


class Role(StrEnum):
    """Role of a process."""

    KEYSTONE = "keystone"
    WEB = "web"
    DATABASE = "database"
    CACHE = "cache"
    BALANCER = "balancer"
    DIRECTORY = "directory"
    PROVIDER = "provider"  # of federated users, beside Keystone
    GENERATOR = "generator"
    OTHER_SIDE = "other-side"  # the service whose load takes turns with the measured one's
    OTHER = "other"


_OF_PART = {
    "uwsgi": Role.KEYSTONE,
    "gunicorn": Role.KEYSTONE,
    "granian": Role.KEYSTONE,
    "single": Role.KEYSTONE,
    "loadstone serve": Role.KEYSTONE,
    "provider": Role.KEYSTONE,  # the identity service, whichever it is
    "keycloak": Role.KEYSTONE,
    "hydra": Role.KEYSTONE,
    "loginpage": Role.KEYSTONE,  # of Hydra; it checks the passwords
    "rust": Role.KEYSTONE,
    "opa": Role.KEYSTONE,  # the policy agent of Keystone in Rust
    "idp": Role.PROVIDER,
    "nginx": Role.WEB,
    "apache": Role.WEB,
    "haproxy": Role.BALANCER,
    "mariadb": Role.DATABASE,
    "postgres": Role.DATABASE,
    "memcached": Role.CACHE,
    "slapd": Role.DIRECTORY,
}
# mod_wsgi gives its daemons a name of this form; they run Keystone, not Apache.
WSGI_DAEMON = "(wsgi:"


def role_of(part: str, command: str = "") -> Role:
    """Return the role of a part's process; `command` is the first word of its command line."""
    kind = part.partition("-")[0]
    # A title that is shorter than what it replaces is filled up with spaces.
    if kind == "apache" and (command.startswith(WSGI_DAEMON) or command.rstrip() == part):
        return Role.KEYSTONE
    return _OF_PART.get(kind, Role.OTHER)


# Programs on other machines, by words of the programs' names; the first match counts.
_OF_PROGRAM = (
    ("keystone", Role.KEYSTONE),
    ("mariadbd", Role.DATABASE),
    ("mysqld", Role.DATABASE),
    ("postgres", Role.DATABASE),
    ("memcached", Role.CACHE),
    ("haproxy", Role.BALANCER),
    ("nginx", Role.WEB),
    ("apache2", Role.WEB),
    ("httpd", Role.WEB),
    ("slapd", Role.DIRECTORY),
)
# Clients of servers that have a server's name in theirs: Prometheus' exporters, a backup.
_CLIENTS = ("exporter", "mysqldump")
# These run any service of a cloud (Nova, Placement, Glance): Keystone if the command names it, in
# a path, a module or the name of a process group.
_APPLICATION_SERVERS = ("uwsgi", "gunicorn", "granian", WSGI_DAEMON)
# An argument of every Keycloak, which is a Java program.
_KEYCLOAK = "-Dkc.home.dir="


def role_of_command(command: str) -> Role:
    """Return the role of a process by its command line."""
    arguments = command.split()
    # Of a script the interpreter comes first; PostgreSQL's backends are named "postgres: ...".
    is_script = bool(arguments) and "python" in arguments[0]
    program = " ".join(arguments[: 3 if is_script else 1]).lower()
    if any(client in program for client in _CLIENTS):
        return Role.OTHER
    if any(server in program for server in _APPLICATION_SERVERS):
        return Role.KEYSTONE if "keystone" in command.lower() else Role.OTHER
    if program.endswith("java"):
        return Role.KEYSTONE if _KEYCLOAK in command else Role.OTHER
    return next((role for word, role in _OF_PROGRAM if word in program), Role.OTHER)
