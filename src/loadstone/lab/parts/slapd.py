"""OpenLDAP's slapd with generated users."""

import base64
import hashlib
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import processes, state
from loadstone.lab.parts.part import Facts
from loadstone.lab.parts.server import Server
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.system.say import Say

SLAPD = Program("slapd", "slapd")
SLAPADD = Program("slapadd", "slapd")
SUFFIX = "dc=loadstone,dc=test"
MANAGER = f"cn=manager,{SUFFIX}"
PEOPLE = f"ou=people,{SUFFIX}"
GROUPS = f"ou=groups,{SUFFIX}"
CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload back_monitor
sizelimit unlimited
database mdb
maxsize 268435456
suffix "{suffix}"
rootdn "{manager}"
rootpw {password}
directory {data}
index objectClass eq
index cn,sn,mail,uid eq
index member eq
database monitor
access to dn.subtree="cn=Connections,cn=Monitor" filter="(monitorConnectionNumber=*)" by * none
access to * by * read
"""
TREE = f"""\
dn: {SUFFIX}
objectClass: dcObject
objectClass: organization
o: loadstone

dn: {PEOPLE}
objectClass: organizationalUnit
ou: people

dn: {GROUPS}
objectClass: organizationalUnit
ou: groups

"""
PERSON = """\
dn: cn={name},{people}
objectClass: inetOrgPerson
cn: {name}
sn: {name}
uid: {name}
mail: {name}@loadstone.test
userPassword: {hashed}

"""


@dataclass(frozen=True, slots=True)
class Slapd(Server):
    """One directory on loopback, created again at each start."""

    users: tuple[str, ...]
    password: str = field(repr=False)  # of the manager and of every user
    kind = "slapd"
    programs = (
        SLAPD,
        Program("/etc/ldap/schema/inetorgperson.schema", "slapd"),
        # python-ldap has no wheel.
        Program("cc", "gcc"),
        Program("/usr/include/ldap.h", "libldap2-dev"),
        Program("/usr/include/sasl/sasl.h", "libsasl2-dev"),
    )
    packages = ("python-ldap", "ldappool")

    @property
    def _conf(self) -> Path:
        return state.secret_folder(self.site.folder) / "slapd.conf"

    def prepare(self, say: Say) -> None:
        """Write the configuration and load the entries."""
        say(f"making a directory of {len(self.users)} users")
        data = self.site.folder / "run" / "ldap"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        hashed = salted(self.password)
        text = CONF.format(suffix=SUFFIX, manager=MANAGER, password=hashed, data=data)
        state.write_secret(self._conf, text)
        people = (PERSON.format(name=u, people=PEOPLE, hashed=hashed) for u in self.users)
        command = Command((SLAPADD.path(), "-q", "-f", str(self._conf)), self.log, self.site.folder)
        processes.complete(command, "slapd could not be filled", TREE + "".join(people))

    def start(self) -> Process:
        """Start the server; -d keeps it in the foreground."""
        url = f"ldap://{HOST}:{self.site.port}/"
        arguments = (SLAPD.path(), "-f", str(self._conf), "-h", url, "-d", "0")
        return self.run(arguments)

    def statistics(self) -> str:
        """Return the URL of cn=Monitor; counters need no password."""
        return f"{self.kind}://{HOST}:{self.site.port}"

    def facts(self) -> Facts:
        """Version."""
        return (("directory", f"slapd {SLAPD.version('-VV')} ({len(self.users)} users)"),)


def salted(password: str) -> str:
    """Return a password as OpenLDAP stores it: {SSHA}, base64 of SHA-1(password, salt) and salt."""
    salt = secrets.token_bytes(8)
    digest = hashlib.sha1(password.encode() + salt).digest()  # noqa: S324  # OpenLDAP's own scheme
    return "{SSHA}" + base64.b64encode(digest + salt).decode()
