"""Users in LDAP: a Keystone domain whose users are in slapd; projects and roles stay in SQL."""

from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.keystone import conf
from loadstone.lab.keystone.settings import Option
from loadstone.lab.parts import slapd
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.server import Site
from loadstone.lab.parts.slapd import Slapd
from loadstone.lab.ports import HOST, Ports
from loadstone.system.say import Say

DOMAIN = "directory"  # also the name of the project in which its users have a role
USERS = tuple(f"user-{number}" for number in range(100))


@dataclass(frozen=True, slots=True)
class DirectoryDomain(Part):
    """Configuration of the domain; it contains the directory's password."""

    folder: Path  # of the deployment
    port: int
    password: str = field(repr=False)
    options: tuple[Option, ...] = field(default=(), repr=False)  # override the lab's
    name: str = "directory"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write the configuration."""
        file = domains_folder(self.folder) / f"keystone.{DOMAIN}.conf"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = (*_options(self.port, self.password), *self.options)
        state.write_secret(file, conf.render(options))
        state.write_secret(password_file(self.folder), self.password)


def directory(
    folder: Path, ports: Ports, password: str, chosen: tuple[Option, ...]
) -> tuple[tuple[Part, ...], tuple[Option, ...]]:
    """Return the parts of a directory, and their options for keystone.conf.

    `chosen` are the user's options. Those of the section `ldap` go into the configuration of the
    domain, because Keystone does not read keystone.conf for it.
    """
    port = ports.allocate("slapd")
    server = Slapd(Site(folder, port), USERS, password)
    own = tuple(option for option in chosen if option[0] == "ldap")
    parts = (server, DirectoryDomain(folder, port, password, own))
    return parts, (
        ("identity", "domain_specific_drivers_enabled", "true"),
        ("identity", "domain_config_dir", str(domains_folder(folder))),
    )


def password_file(folder: Path) -> Path:
    """Return the file that holds the password of every user of the directory."""
    return state.secret_folder(folder) / "directory-password"


def domains_folder(folder: Path) -> Path:
    """Return the folder of the domain-specific configurations."""
    return state.secret_folder(folder) / "domains"


def _options(port: int, password: str) -> tuple[Option, ...]:
    ldap = {
        "url": f"ldap://{HOST}:{port}",
        "user": slapd.MANAGER,
        "password": password,
        "suffix": slapd.SUFFIX,
        "query_scope": "sub",
        "user_tree_dn": slapd.PEOPLE,
        "user_objectclass": "inetOrgPerson",
        "user_id_attribute": "cn",
        "user_name_attribute": "cn",
        "user_mail_attribute": "mail",
        "group_tree_dn": slapd.GROUPS,
        "group_objectclass": "groupOfNames",
        "group_id_attribute": "cn",
        "group_name_attribute": "cn",
        "group_member_attribute": "member",
        "use_pool": "true",
        "use_auth_pool": "true",
    }
    options = tuple(("ldap", key, value) for key, value in ldap.items())
    return (("identity", "driver", "ldap"), *options)
