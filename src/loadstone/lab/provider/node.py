"""node oidc-provider: a certified OpenID provider from npm, in one process."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import processes
from loadstone.lab.hashing import FACT
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.server import Server, answers
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.lab.provider import credentials
from loadstone.lab.provider.credentials import CLIENT_ID, REDIRECT_URI, USERS
from loadstone.lab.provider.password_hash import scrypt_in_words
from loadstone.system import files, locks, paths
from loadstone.system.say import Say

VERSION = "9.13.3"
LEAST_NODE = 20  # 20.20 and 22 were tried; with 18 the package does not start
NPM = Program("npm", "npm")
SERVER = Path(__file__).parent / "inside" / "node_provider.mjs"
# Without a limit, npm tries an unreachable registry for many minutes.
_NPM_OPTIONS = ("--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000")


class NodeProgram(Program):
    """Node as a program that a part needs."""

    __slots__ = ()

    def find(self) -> str | None:
        """Return the one on the PATH if it is new enough."""
        found = Program("node", self.package).find()
        if found is None:
            return None
        version = Program(found, self.package).version("--version")
        major = version.partition(".")[0]
        return found if major.isdecimal() and int(major) >= LEAST_NODE else None


NODE = NodeProgram(f"node (version {LEAST_NODE} or later)", "nodejs")


def packages_folder() -> Path:
    """Return the folder that the package is installed in, once for all deployments."""
    return paths.environments() / f"oidc-provider-{VERSION}"


def _network_variables() -> dict[str, str]:
    """Return the variables that say how this machine reaches the registry."""
    names = ("NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in names or name.lower().startswith("npm_config_")
    }


@dataclass(frozen=True, slots=True)
class NodePackages(Part):
    """The npm package, and what it needs."""

    deployment: Path

    programs = (NODE, NPM)
    name = "npm"

    def prepare(self, say: Say) -> None:
        """Install the package, unless it is there."""
        folder = packages_folder()
        with locks.held(folder.parent / f".{folder.name}.lock"):
            if not (folder / "complete").exists():
                say(f"installing oidc-provider {VERSION} with npm (once)")
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                files.write(folder / "package.json", '{"type": "module", "private": true}\n')
                words = (NPM.path(), "install", *_NPM_OPTIONS, "--prefix", str(folder))
                arguments = (*words, f"oidc-provider@{VERSION}")
                log = self.deployment / "logs" / "npm.log"
                processes.complete(
                    Command(arguments, log, self.deployment, _network_variables()),
                    f"npm could not install oidc-provider {VERSION}",
                )
                files.write(folder / "complete", f"{VERSION}\n")
            files.write(folder / SERVER.name, SERVER.read_text())


@dataclass(frozen=True, slots=True)
class NodeProvider(Server):
    """The provider, with one client and users of its own, all in memory."""

    scrypt_n: int = 0

    kind = "provider"
    programs = (NODE,)

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Make the client's secret and the users' passwords."""
        credentials.make(self.site.folder, USERS)

    def start(self) -> Process:
        """Start node."""
        variables = {
            "PORT": str(self.site.port),
            "CLIENT_ID": CLIENT_ID,
            "REDIRECT_URI": REDIRECT_URI,
            "SECRET_FILE": str(credentials.client_secret_file(self.site.folder)),
            "USERS_FILE": str(credentials.users_file(self.site.folder)),
            "NODE_ENV": "production",
            **({"SCRYPT_N": str(self.scrypt_n)} if self.scrypt_n else {}),
        }
        return self.run((NODE.path(), str(packages_folder() / SERVER.name)), variables)

    def healthy(self) -> bool:
        """Return whether it publishes its metadata."""
        return answers(self.site, "/.well-known/openid-configuration")

    def facts(self) -> Facts:
        """Versions, and what a password check costs."""
        return (
            ("provider", f"node oidc-provider {VERSION}"),
            ("node", NODE.version("--version")),
            (FACT, scrypt_in_words(self.scrypt_n)),
        )
