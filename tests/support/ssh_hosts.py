"""Hosts to log in to, as the user who runs the tests: sshd on loopback, or in namespaces."""

import contextlib
import getpass
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from network_hosts import NetworkHost
from reserved_port import reserve_port

SSHD = "/usr/sbin/sshd"
CONF = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitUserEnvironment no
PermitRootLogin prohibit-password
MaxStartups 100
{force}
"""


@dataclass(frozen=True)
class SshHosts:
    """Names, and the configuration of ssh that leads to them."""

    names: tuple[str, ...]
    config: Path


@contextlib.contextmanager
def ssh_hosts(
    folder: Path, commands: dict[str, str], places: Mapping[str, NetworkHost] | None = None
) -> Iterator[SshHosts]:
    """Serve a host per name; its login runs the given command in place of what is asked for.

    Those in `places` are in network namespaces.
    """
    for key in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(command, check=True)
    # sshd as root wants its folder for separated privileges.
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    processes, blocks = [], []
    with contextlib.ExitStack() as stack:
        for name, command in commands.items():
            port = reserve_port()
            conf = folder / f"{name}.conf"
            force = f"ForceCommand {command}" if command else ""
            place = (places or {}).get(name)
            address = "127.0.0.1" if place is None else place.address
            conf.write_text(CONF.format(port=port, folder=folder, force=force, address=address))
            command_line = [SSHD, "-D", "-e", "-f", str(conf)]
            if place is not None:
                command_line = place.command(*command_line)
            process = subprocess.Popen(command_line, stderr=subprocess.PIPE, text=True)
            stack.callback(_end, process)
            processes.append((process, port))
            blocks.append(_block(name, address, port, folder))
        for process, port in processes:
            _await(process, port)
        config = folder / "ssh_config"
        config.write_text("".join(blocks))
        yield SshHosts(tuple(commands), config)


def with_settings(settings: dict[str, str]) -> str:
    """Return a command for a host that runs what is asked for, with these variables."""
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    return f'env {words} sh -c "$SSH_ORIGINAL_COMMAND"'


def is_installed() -> bool:
    return Path(SSHD).exists() and shutil.which("ssh") is not None


def _block(name: str, address: str, port: int, folder: Path) -> str:
    return (
        f"Host {name}\n  HostName {address}\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {folder}/user_key\n  IdentitiesOnly yes\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )


def _await(process: subprocess.Popen[str], port: int) -> None:
    """Wait for sshd's own word that it listens."""
    assert process.stderr is not None
    for line in process.stderr:
        if f"port {port}" in line and "listening" in line:
            return
    raise AssertionError(f"sshd ended with {process.wait()}")


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate()
