"""Creates the tables of the compute cloud, once for all deployments."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadstone.lab import processes, state
from loadstone.lab.keystone import conf
from loadstone.lab.keystone.compute import configuration
from loadstone.lab.keystone.compute.cloud import CloudLayout
from loadstone.lab.keystone.compute.database import ComputeDatabase
from loadstone.lab.processes import Command
from loadstone.system.concurrently import each

# The databases' URLs contain the port and password of one deployment, and the tables are copied to
# others, so Nova fills these in from its own [database] connection.
CELL = "{{scheme}}://{{username}}:{{password}}@{{hostname}}:{{port}}/{schema}?{{query}}"
# Likewise, from its transport_url.
BUS = "{scheme}://{username}:{password}@{hostname}:{port}/"


@dataclass(frozen=True, slots=True)
class _SchemaJob:
    name: str
    commands: tuple[tuple[str, ...], ...]  # in this order
    variables: tuple[tuple[str, str], ...] = ()


def sync(cloud: CloudLayout, log: Path, database: ComputeDatabase, folder: Path) -> None:
    """Run the db_sync of each service, several at a time."""
    filled = replace(cloud, database=database)
    write(filled, folder)
    jobs = _jobs(filled, folder)

    def carry_out(job: _SchemaJob) -> None:
        for number, arguments in enumerate(job.commands, 1):
            own = log.with_name(f"{log.stem}-{job.name}-{number}.log")
            variables = cloud.variables | dict(job.variables)
            command = Command(arguments, own, cloud.folder, variables)
            processes.complete(command, f"the tables of {job.name} could not be made")

    each(carry_out, jobs, max(2, os.cpu_count() or 1))


def write(cloud: CloudLayout, folder: Path) -> None:
    """Write the configuration files into a private folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, options in configuration.files(cloud).items():
        state.write_secret(folder / name, conf.render(options))


def _jobs(cloud: CloudLayout, folder: Path) -> Sequence[_SchemaJob]:
    def options(*names: str) -> tuple[str, ...]:
        return tuple(word for name in names for word in ("--config-file", str(folder / name)))

    nova = (cloud.program("nova-manage"), *options("nova.conf", "nova-db.conf"))
    cells = tuple(CELL.format(schema=schema) for schema in ("nova_cell0", "nova_cell1"))
    return (
        # The longest first.
        _SchemaJob(
            "neutron",
            ((cloud.program("neutron-db-manage"), *options("neutron.conf"), "upgrade", "heads"),),
        ),
        _SchemaJob(
            "nova",
            (
                (*nova, "api_db", "sync"),
                (*nova, "cell_v2", "map_cell0", "--database_connection", cells[0]),
                (
                    *(*nova, "cell_v2", "create_cell", "--name", "cell1"),
                    *("--database_connection", cells[1], "--transport-url", BUS),
                ),
                (*nova, "db", "sync"),
            ),
        ),
        _SchemaJob(
            "glance", ((cloud.program("glance-manage"), *options("glance-api.conf"), "db_sync"),)
        ),
        _SchemaJob(
            "placement",
            ((cloud.program("placement-manage"), *options("placement.conf"), "db", "sync"),),
            (("OS_PLACEMENT_CONFIG_DIR", str(folder)),),
        ),
    )
