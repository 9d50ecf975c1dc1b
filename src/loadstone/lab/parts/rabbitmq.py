"""RabbitMQ with Erlang's port mapper beside it, both on loopback."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.parts.server import Server
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Process
from loadstone.lab.programs import Program
from loadstone.system.say import Say

PACKAGE = "rabbitmq-server"
# The one on the PATH is Debian's wrapper, which insists on the user rabbitmq.
PROGRAM = Program("/usr/lib/rabbitmq/bin/rabbitmq-server", PACKAGE)
EPMD = Program("epmd", PACKAGE)
USER = "lab"
CONFIGURATION = """\
listeners.tcp.1 = {host}:{port}
default_user = {user}
default_pass = {password}
"""


@dataclass(frozen=True, slots=True)
class PortMapper(Server):
    """Erlang's port mapper, one per deployment, so that brokers of others are not registered."""

    kind = "epmd"
    programs = (EPMD,)

    def start(self) -> Process:
        """Start it."""
        return self.run((EPMD.path(), "-address", HOST, "-port", str(self.site.port)))


@dataclass(frozen=True, slots=True)
class RabbitMq(Server):
    """One broker, empty at each start."""

    mapper_port: int
    distribution_port: int
    password: str = field(repr=False)
    kind = "rabbitmq"
    programs = (PROGRAM, EPMD)

    @property
    def _data(self) -> Path:
        return self.site.folder / "run" / self.name

    @property
    def _secret(self) -> Path:
        return state.secret_folder(self.site.folder) / "rabbitmq.conf"

    def url(self) -> str:
        """Return oslo.messaging's URL."""
        return f"rabbit://{USER}:{self.password}@{HOST}:{self.site.port}/"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Remove the data of the last start, because its user had another password."""
        shutil.rmtree(self._data, ignore_errors=True)
        (self._data / "home").mkdir(mode=0o700, parents=True)
        values = {"host": HOST, "port": self.site.port, "user": USER, "password": self.password}
        state.write_secret(self._secret, CONFIGURATION.format(**values))

    def start(self) -> Process:
        """Start the broker on one core, without busy waiting."""
        erlang = "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none"
        variables = {
            "HOME": str(self._data / "home"),
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(self.mapper_port),
            "RABBITMQ_NODENAME": f"lab{self.site.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.site.port),
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self._data / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.log.parent),
            "RABBITMQ_CONFIG_FILE": str(self._secret.with_suffix("")),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._data / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self._data / "env.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": erlang,
        }
        return self.run((PROGRAM.path(),), variables)
