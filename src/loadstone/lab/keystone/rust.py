"""Keystone in Rust on the database and keys of the Python part, and the policy agent that it asks.

Both are built once (`make keystone-rust SOURCE=FOLDER`), which takes half an hour.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import processes, state
from loadstone.lab.keystone import conf
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.server import Server, Site, answers
from loadstone.lab.ports import HOST, Ports
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.system import paths
from loadstone.system.say import Say

VARIABLE = "LOADSTONE_KEYSTONE_RUST"
BUILT_BY = (
    "make keystone-rust SOURCE=FOLDER in a checkout of Loadstone (half an hour), or name the "
    f"folder that has them: {VARIABLE}"
)


def folder() -> Path:
    """Return the folder with keystone, keystone-manage, opa and the policies."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen).absolute() if chosen else paths.environments() / "keystone-rust"


def _program(name: str) -> Program:
    return Program(str(folder() / name), "", built_by=BUILT_BY)


@dataclass(frozen=True, slots=True)
class PolicyAgent(Server):
    """Open Policy Agent, which Keystone in Rust asks before all calls but the issue of a token."""

    kind = "opa"

    @property
    def programs(self) -> tuple[Program, ...]:
        """The agent and its policies."""
        return (_program("opa"), _program("policy"))

    def start(self) -> Process:
        """Start it with the policies of the source."""
        opa, policies = (program.path() for program in self.programs)
        address = f"{HOST}:{self.site.port}"
        quiet = ("--log-level", "error", "--skip-version-check")
        return self.run((opa, "run", "--server", policies, "--addr", address, *quiet))

    def healthy(self) -> bool:
        """Return whether it has loaded the policies."""
        return answers(self.site, "/health")


@dataclass(frozen=True, slots=True)
class RustKeystone(Server):
    """The service, one process with a thread for each core."""

    agent: Site
    metrics_port: int
    url: str
    hash_rounds: int
    database: str = field(repr=False)  # URL as in Python's keystone.conf

    kind = "rust"

    @property
    def name(self) -> str:
        """Name in messages."""
        return "rust-keystone"

    @property
    def programs(self) -> tuple[Program, ...]:
        """The service, and what prepares its tables."""
        return (_program("keystone"), _program("keystone-manage"))

    @property
    def _secret_conf(self) -> Path:
        return state.secret_folder(self.site.folder) / "keystone-rust.conf"

    @property
    def _spool(self) -> Path:
        return self.site.folder / "audit"

    def prepare(self, say: Say) -> None:
        """Write its configuration, and add its tables to the database."""
        keys = self.site.folder / "keys"
        options = (
            ("DEFAULT", "use_stderr", "true"),
            ("DEFAULT", "public_endpoint", self.url.removesuffix("/v3")),
            ("database", "connection", self.database),
            ("auth", "methods", ",".join(conf.METHODS)),
            ("api_policy", "opa_base_url", f"http://{HOST}:{self.agent.port}"),
            ("fernet_tokens", "key_repository", str(keys / "fernet")),
            ("fernet_receipts", "key_repository", str(keys / "receipts")),
            ("credential", "key_repository", str(keys / "credential")),
            ("identity", "password_hash_rounds", str(self.hash_rounds)),
            ("interface_public", "tcp_address", f"{self.site.host}:{self.site.port}"),
            ("interface_public", "type", "http"),
            ("interface_metrics", "tcp_address", f"{HOST}:{self.metrics_port}"),
            ("audit", "spool_dir", str(self._spool)),
            ("audit", "node_id", "lab"),
        )
        state.write_secret(self._secret_conf, conf.render(options))
        self._spool.mkdir(mode=0o700, exist_ok=True)
        say("adding the tables of Keystone in Rust")
        arguments = (self.programs[1].path(), "-c", str(self._secret_conf), "db", "up")
        log = self.site.folder / "logs" / "prepare.log"
        processes.complete(
            Command(arguments, log, self.site.folder), "Keystone in Rust could not be prepared"
        )

    def start(self) -> Process:
        """Start it without the events of the run before, which it would replay without end."""
        for old in self._spool.glob("audit-spool-*.jsonl"):
            old.unlink()
        return self.run((self.programs[0].path(), "-c", str(self._secret_conf)))

    def healthy(self) -> bool:
        """Return whether it serves."""
        return answers(self.site, "/v3")

    def facts(self) -> Facts:
        """Say what is served; the version alone does not tell builds apart."""
        commit = folder() / "commit"
        known = commit.read_text().strip() if commit.exists() else "unknown commit"
        version = self.programs[0].version("--version")
        return (("implementation", f"Keystone in Rust {version}, {known}"),)


def in_rust(
    site: Site, ports: Ports, url: str, database: str, hash_rounds: int
) -> tuple[Part, ...]:
    """Return the parts in place of a web server."""
    agent = Site(site.folder, ports.allocate("opa"))
    metrics = ports.allocate("rust-metrics")
    return (PolicyAgent(agent), RustKeystone(site, agent, metrics, url, hash_rounds, database))
